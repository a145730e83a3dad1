//! The command: reads the configuration, prints its faults and doubts.

use crate::cli::args::settings::{self, Settings};
use crate::cli::args::setup::Check;
use crate::cli::process::Failure;
use crate::config::source::Environment;

use super::report::Report;
use super::stream;

/// Prints all faults, or that there are none.
pub(crate) fn run(check: &Check) -> Result<(), Failure> {
    if check.reads_stdin() {
        return stream::run(check);
    }
    let (read, files) = match settings::read_or_part(&check.shared) {
        Ok(Settings { loaded, files }) => (Ok(loaded), files),
        Err(part) => (Err(part), Vec::new()),
    };
    Report::new(read, &files, check, &Environment::of_process())?.print(check)
}
