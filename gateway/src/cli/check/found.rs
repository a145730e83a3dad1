//! What was found in one configuration or several, and how it is told.

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

/// What was found in one configuration.
pub(super) struct Found {
    /// What it is the configuration of, where that is not plain.
    of: Option<String>,
    files: Vec<PathBuf>,
    upstreams: usize,
    faults: Vec<Fault>,
    /// Who has logged in, where principals do so for themselves.
    logins: Vec<String>,
    /// Whether the gateway would not start with it.
    is_broken: bool,
    seen: Option<Seen>,
    secrets: Secrets,
}

impl Found {
    /// What is wrong or doubtful in what was read of these files.
    pub(super) fn of(
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
                Self { of: None, files, upstreams, faults, logins, is_broken: false, seen, secrets: config.secrets }
            }
            Err(part) => {
                let Part { faults: Faults(mut faults), doubts, config } = *part;
                faults.extend(doubts);
                // What the faults are not about is judged as well.
                faults.extend(doubts::of_upstreams(&config, environment));
                let (upstreams, logins) = (config.upstreams.len(), Vec::new());
                Self {
                    of: None,
                    files,
                    upstreams,
                    faults,
                    logins,
                    is_broken: true,
                    seen: None,
                    secrets: config.secrets,
                }
            }
        })
    }

    /// There is no configuration, and why.
    pub(super) fn nothing(faults: Vec<Fault>) -> Self {
        let (files, logins, secrets) = (Vec::new(), Vec::new(), Secrets::default());
        Self { of: None, files, upstreams: 0, faults, logins, is_broken: true, seen: None, secrets }
    }

    /// It is the configuration of this, which runs elsewhere: who has logged in is not known here.
    pub(super) fn of_what(self, of: String) -> Self {
        Self { of: Some(of), logins: Vec::new(), ..self }
    }

    /// Leaves warnings of these kinds away.
    pub(super) fn forget(&mut self, kinds: &[&str]) {
        self.faults.retain(|fault| fault.severity == Severity::Error || !kinds.contains(&fault.kind));
    }

    /// Every warning is an error.
    fn strict(&mut self) {
        self.faults.iter_mut().for_each(|fault| fault.severity = Severity::Error);
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
        let of = self.of.as_ref().map(|of| format!("{of}: ")).unwrap_or_default();
        self.secrets.masked(&format!("{of}{verdict}")).into_owned()
    }
}

/// Prints all of it; fails where one of them is not good.
pub(super) fn tell(check: &Check, all: Vec<Found>) -> Result<(), Failure> {
    let mut all = all;
    if check.strict {
        all.iter_mut().for_each(Found::strict);
    }
    let mut out = answer();
    if check.json {
        let secrets = all.iter().fold(Secrets::default(), |secrets, one| secrets.and(&one.secrets));
        out.json(&secrets.masked(&report(&all)))?;
    } else {
        for found in &all {
            write!(out, "{}", Room::of_stdout().layout().list(&found.faults))?;
            write!(out, "{}", found.secrets.masked(&found.seen.as_ref().map(view::shown).unwrap_or_default()))?;
            for line in &found.logins {
                writeln!(out, "{}", found.secrets.masked(line))?;
            }
            writeln!(out, "{}", found.verdict())?;
        }
    }
    if all.iter().any(Found::is_bad) { Err(Failure::Said) } else { Ok(()) }
}

/// All faults as JSON, and what somebody sees.
fn report(all: &[Found]) -> String {
    let faults: Vec<_> = all.iter().flat_map(|found| &found.faults).map(Fault::json).collect();
    let mut whole = json!({ "upstreams": all.iter().map(|found| found.upstreams).sum::<usize>(), "faults": faults });
    let of: Vec<_> = all.iter().filter_map(|found| found.of.as_ref()).collect();
    if !of.is_empty() {
        whole["gateways"] = json!(of);
    }
    let logins: Vec<_> = all.iter().flat_map(|found| &found.logins).collect();
    if !logins.is_empty() {
        whole["logins"] = json!(logins);
    }
    if let Some(seen) = all.iter().find_map(|found| found.seen.as_ref()) {
        whole["seen"] = json!(seen);
    }
    format!("{whole:#}")
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
