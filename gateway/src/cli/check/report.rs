//! The faults and doubts of a configuration, and their output.

use std::io::Write;
use std::path::PathBuf;

use serde_json::json;

use crate::cli::args::setup::Check;
use crate::cli::process::table::Room;
use crate::cli::process::{Failure, answer};
use crate::config::fault::{Fault, Faults, Severity, count, printable};
use crate::config::source::Environment;
use crate::config::{Loaded, Part};
use crate::gateway::Seen;
use crate::secrets::Secrets;

use super::{doubts, personal, view};

/// The faults and doubts of one configuration.
pub(super) struct Report {
    files: Vec<PathBuf>,
    upstreams: usize,
    faults: Vec<Fault>,
    /// A line for each upstream with the principals that have logged in to it themselves.
    logins: Vec<String>,
    /// Whether the gateway would not start with the configuration.
    is_broken: bool,
    seen: Option<Seen>,
    secrets: Secrets,
}

impl Report {
    /// Judges a configuration that was read from `files`.
    pub(super) fn new(
        read: Result<Loaded, Box<Part>>,
        files: &[PathBuf],
        check: &Check,
        environment: &Environment,
    ) -> Result<Self, Failure> {
        let files = files.to_vec();
        match &read {
            Ok(loaded) => loaded.config.secrets.keep(),
            Err(part) => part.config.secrets.keep(),
        }
        Ok(match read {
            Ok(Loaded { config, warnings: mut faults, doubts }) => {
                faults.extend(doubts);
                faults.extend(doubts::all(&files, &config, environment));
                let seen = check.by.as_deref().map(|name| view::of(&config, name)).transpose()?;
                let (upstreams, logins) = (config.upstreams.len(), personal::told(&config));
                Self { files, upstreams, faults, logins, is_broken: false, seen, secrets: config.secrets }
            }
            Err(part) => {
                let Part { faults: Faults(mut faults), doubts, config } = *part;
                faults.extend(doubts);
                // The parts without faults are judged as well.
                faults.extend(doubts::of_upstreams(&config, environment));
                let (upstreams, logins) = (config.upstreams.len(), Vec::new());
                Self { files, upstreams, faults, logins, is_broken: true, seen: None, secrets: config.secrets }
            }
        })
    }

    /// Prints the report. Fails if there is an error, with `--strict` also if there is a warning.
    pub(super) fn print(mut self, check: &Check) -> Result<(), Failure> {
        if check.strict {
            self.faults.iter_mut().for_each(|fault| fault.severity = Severity::Error);
        }
        let mut out = answer();
        if check.json {
            out.json(&self.secrets.masked(&self.to_json()))?;
        } else {
            write!(out, "{}", Room::of_stdout().layout().list(&self.faults))?;
            write!(out, "{}", self.secrets.masked(&self.seen.as_ref().map(view::shown).unwrap_or_default()))?;
            for line in &self.logins {
                writeln!(out, "{}", self.secrets.masked(line))?;
            }
            writeln!(out, "{}", self.verdict())?;
        }
        if self.is_bad() { Err(Failure::Said) } else { Ok(()) }
    }

    fn is_bad(&self) -> bool {
        self.is_broken || self.faults.iter().any(|fault| fault.severity == Severity::Error)
    }

    /// The last line.
    fn verdict(&self) -> String {
        let verdict = match self.is_broken {
            true => count(&self.faults),
            false => verdict(&self.files, self.upstreams, &self.faults),
        };
        self.secrets.masked(&verdict).into_owned()
    }

    fn to_json(&self) -> String {
        let faults: Vec<_> = self.faults.iter().map(Fault::json).collect();
        let mut report = json!({ "upstreams": self.upstreams, "faults": faults });
        if !self.logins.is_empty() {
            report["logins"] = json!(self.logins);
        }
        if let Some(seen) = &self.seen {
            report["seen"] = json!(seen);
        }
        format!("{report:#}")
    }
}

/// What is said of files.
fn verdict(files: &[PathBuf], upstreams: usize, warnings: &[Fault]) -> String {
    let files: Vec<String> = files.iter().map(|path| printable(&path.display().to_string())).collect();
    let files = if files.is_empty() { "no file".to_owned() } else { files.join(", ") };
    let upstreams = if upstreams == 1 { "1 upstream".to_owned() } else { format!("{upstreams} upstreams") };
    match count(warnings).as_str() {
        "" => format!("{files}: {upstreams}, no faults"),
        faults if faults.contains("error") => format!("{files}: {upstreams}, {faults}"),
        warnings => format!("{files}: {upstreams}, no faults, {warnings}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_counts() {
        let doubt = Fault::warning("x", "x");
        assert_eq!(verdict(&[], 1, &[]), "no file: 1 upstream, no faults");
        assert_eq!(verdict(&["a".into(), "b".into()], 2, &[doubt]), "a, b: 2 upstreams, no faults, 1 warning");
    }
}
