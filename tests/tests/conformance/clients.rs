//! Every scenario for clients: an official SDK in front of the gateway, the suite's mock servers behind it.

use tokio::task::JoinSet;
use trunkline_tests::conformance::{Check, Edition, Status, Suite};

/// How often a scenario is tried before it counts as not passed.
const LOOKS: usize = 3;

/// With which edition of the suite, and at which revision.
const LEGS: [(Edition, &str); 3] =
    [(Edition::Newest, "2025-11-25"), (Edition::Newest, "2026-07-28"), (Edition::Latest, "2025-11-25")];

/// One scenario.
pub(crate) struct Run {
    /// By which edition.
    pub(crate) edition: Edition,
    /// At which revision.
    pub(crate) revision: &'static str,
    /// Which one.
    pub(crate) scenario: String,
    /// How often it was tried.
    pub(crate) looks: usize,
    /// Whether it passed in the end.
    pub(crate) has_passed: bool,
    /// The checks of the last time.
    checks: Vec<Check>,
}

impl Run {
    /// How many checks passed the last time.
    pub(crate) fn passed(&self) -> usize {
        self.checks.iter().filter(|check| check.status == Status::Success).count()
    }

    /// What is wrong, unless it passed.
    pub(crate) fn fault(&self) -> Option<String> {
        let failed = self.checks.iter().filter(|check| check.status >= Status::Warning);
        let failed = failed.map(|check| format!("{}: {}", check.id, check.error_message.clone().unwrap_or_default()));
        let failed = failed.collect::<Vec<_>>().join("; ");
        (!self.has_passed).then(|| format!("{:?} {} {}: {failed}", self.edition, self.revision, self.scenario))
    }
}

/// Runs them all.
pub(crate) async fn run_all(suite: &'static Suite) -> Vec<Run> {
    let mut runs = JoinSet::new();
    for (edition, revision) in LEGS {
        let scenarios = suite.scenarios_for_clients(edition, revision).await;
        assert!(!scenarios.is_empty(), "{edition:?} has no scenario for clients at {revision}");
        for scenario in scenarios {
            runs.spawn(run(suite, edition, revision, scenario));
        }
    }
    let mut runs = runs.join_all().await;
    runs.sort_by_key(|run| (run.edition, run.revision, run.scenario.clone()));
    runs
}

async fn run(suite: &'static Suite, edition: Edition, revision: &'static str, scenario: String) -> Run {
    let mut run = Run { edition, revision, scenario, looks: 0, has_passed: false, checks: Vec::new() };
    while !run.has_passed && run.looks < LOOKS {
        let _turn = suite.turn().await;
        run.looks += 1;
        (run.has_passed, run.checks) = suite.connect(edition, revision, &run.scenario).await;
        // What leaves no check behind has not been judged.
        run.has_passed &= run.passed() > 0;
    }
    run
}
