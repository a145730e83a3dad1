//! Verdicts of the suite, as it writes them down.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::Deserialize;

/// A verdict, the better ones first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Status {
    /// It holds.
    Success,
    /// Nothing was judged.
    Info,
    /// It could not be judged.
    Skipped,
    /// A recommendation is not kept.
    Warning,
    /// It does not hold.
    Failure,
    /// The check was never come to.
    Missing,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Success => "success",
            Self::Info => "info",
            Self::Skipped => "skipped",
            Self::Warning => "warning",
            Self::Failure => "failure",
            Self::Missing => "missing",
        })
    }
}

/// One check of a scenario.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Check {
    /// What is checked; several checks may share it.
    pub id: String,
    /// Which of them.
    pub name: String,
    /// What came of it.
    pub status: Status,
    /// Why not.
    pub error_message: Option<String>,
}

/// The checks of every scenario that was run.
pub type Checks = BTreeMap<String, Vec<Check>>;

/// Reads what a run of the suite left in its folder: one folder per scenario, named for it and the time.
pub(crate) fn read(folder: &Path, prefix: &str) -> Checks {
    const TIME: usize = "-2026-07-28T00-00-00-000Z".len();
    let mut checks = Checks::new();
    let Ok(scenarios) = std::fs::read_dir(folder) else { return checks };
    for scenario in scenarios.flatten() {
        let name = scenario.file_name().to_string_lossy().into_owned();
        let Some(name) = name.strip_prefix(prefix).and_then(|name| name.get(..name.len().checked_sub(TIME)?)) else {
            continue;
        };
        // A scenario that was broken off has no file, or half of one: it counts as not run.
        let text = std::fs::read(scenario.path().join("checks.json")).unwrap_or_default();
        if let Ok(found) = serde_json::from_slice::<Vec<Check>>(&text) {
            checks.insert(name.to_owned(), found);
        }
    }
    checks
}
