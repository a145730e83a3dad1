//! `trunkline version`.

use std::io::Write;

use super::process::Failure;

/// Says which version this is.
pub(super) fn run() -> Result<(), Failure> {
    writeln!(std::io::stdout().lock(), "trunkline {}", env!("CARGO_PKG_VERSION"))?;
    Ok(())
}
