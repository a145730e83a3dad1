//! The command: reads the configuration, prints its faults and doubts.

use std::io::Write;
use std::path::PathBuf;

use crate::config::fault::{Fault, count, listed, printable};
use crate::config::source::Environment;

use super::doubts;
use crate::cli::args::{Shared, settings};
use crate::cli::process::Failure;

/// Prints all faults, or that there are none.
pub(crate) fn run(shared: &Shared) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match settings::read(shared, Vec::new()) {
        Ok(settings) => {
            let mut warnings = settings.loaded.warnings;
            warnings.extend(settings.loaded.doubts);
            warnings.extend(doubts::all(&settings.files, &settings.loaded.config, &Environment::of_process()));
            write!(out, "{}", listed(&warnings))?;
            let verdict = verdict(&settings.files, settings.loaded.config.upstreams.len(), &warnings);
            writeln!(out, "{}", settings.loaded.config.secrets.masked(&verdict))?;
            Ok(())
        }
        Err(faults) => {
            writeln!(out, "{faults}")?;
            Err(Failure::Said)
        }
    }
}

/// The last line.
fn verdict(files: &[PathBuf], upstreams: usize, warnings: &[Fault]) -> String {
    let files: Vec<String> = files.iter().map(|path| printable(&path.display().to_string())).collect();
    let files = if files.is_empty() { "no file".to_owned() } else { files.join(", ") };
    let upstreams = if upstreams == 1 { "1 upstream".to_owned() } else { format!("{upstreams} upstreams") };
    match count(warnings).as_str() {
        "" => format!("{files}: {upstreams}, no faults"),
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
