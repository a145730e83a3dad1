//! The command: reads the configuration, prints its faults and doubts.

use std::io::Write;
use std::path::PathBuf;

use serde_json::json;

use crate::config::Part;
use crate::config::fault::{Fault, Severity, count, listed, printable};
use crate::config::source::Environment;
use crate::gateway::Seen;

use super::{doubts, view};
use crate::cli::args::settings;
use crate::cli::args::setup::Check;
use crate::cli::process::{Failure, answer};

/// Prints all faults, or that there are none.
pub(crate) fn run(check: &Check) -> Result<(), Failure> {
    let mut out = answer();
    match settings::read_or_part(&check.shared) {
        Ok(settings) => {
            let mut warnings = settings.loaded.warnings;
            warnings.extend(settings.loaded.doubts);
            warnings.extend(doubts::all(&settings.files, &settings.loaded.config, &Environment::of_process()));
            let is_bad = check.strict && !warnings.is_empty();
            if is_bad {
                warnings.iter_mut().for_each(|warning| warning.severity = Severity::Error);
            }
            let secrets = &settings.loaded.config.secrets;
            let upstreams = settings.loaded.config.upstreams.len();
            let seen = check.by.as_deref().map(|name| view::of(&settings.loaded.config, name)).transpose()?;
            if check.json {
                out.json(&secrets.masked(&report(&warnings, upstreams, seen.as_ref())))?;
            } else {
                write!(out, "{}", listed(&warnings))?;
                write!(out, "{}", secrets.masked(&seen.as_ref().map(view::shown).unwrap_or_default()))?;
                writeln!(out, "{}", secrets.masked(&verdict(&settings.files, upstreams, &warnings)))?;
            }
            if is_bad { Err(Failure::Said) } else { Ok(()) }
        }
        Err(part) => {
            let Part { mut faults, doubts, config } = *part;
            faults.0.extend(doubts);
            // What the faults are not about is judged as well.
            let upstreams = config.upstreams.len();
            faults.0.extend(doubts::of_upstreams(&config, &Environment::of_process()));
            match check.json {
                true => out.json(&report(&faults.0, upstreams, None))?,
                false => writeln!(out, "{faults}")?,
            }
            Err(Failure::Said)
        }
    }
}

/// All faults as JSON, and what somebody sees.
fn report(faults: &[Fault], upstreams: usize, seen: Option<&Seen>) -> String {
    let mut whole = json!({ "upstreams": upstreams, "faults": faults.iter().map(Fault::json).collect::<Vec<_>>() });
    if let Some(seen) = seen {
        whole["seen"] = json!(seen);
    }
    format!("{whole:#}")
}

/// The last line.
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
