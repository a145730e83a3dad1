//! What systemd says of units, without a system that it has started.

use std::path::Path;
use std::process::Command;

use crate::peers::or_skip;
use crate::scratch::Scratch;

const PROGRAM: &str = "/usr/bin/systemd-analyze";

/// What systemd has to complain about in units that stand side by side, by name; or nothing where it is not installed, and then the reason
/// stands on stderr.
///
/// # Panics
/// With `TRUNKLINE_REQUIRE_PEERS=1`, when it is not installed.
#[must_use]
pub fn complaints(units: &[(&str, &str)]) -> Option<String> {
    let found = Path::new(PROGRAM).exists();
    or_skip(&found.then_some(()).ok_or_else(|| "systemd is not installed (Debian: systemd)".to_owned()))?;
    let scratch = Scratch::new();
    let files: Vec<_> = units.iter().map(|(name, text)| scratch.file(name, text)).collect();
    let run = Command::new(PROGRAM).args(["verify", "--man=no"]).args(files).output().expect("it starts");
    let said = String::from_utf8_lossy(&[run.stdout, run.stderr].concat()).into_owned();
    // It ends with 0 where it leaves out a key that it does not know.
    Some(if run.status.success() || !said.is_empty() { said } else { run.status.to_string() })
}
