//! The guard: a small process that outlives the gateway by a moment, and ends whatever of its children is left then.

use super::sweep;
use std::io::Read;
use std::process::ExitCode;

/// The hidden command that it is.
pub(super) const GUARD: &str = "guard-upstreams";

/// Waits for the end of stdin, whose other end only the gateway holds; then ends everybody who bears a mark of its run.
pub fn guard(run: &str) -> ExitCode {
    let mut stdin = std::io::stdin().lock();
    let mut byte = [0];
    // Nothing is ever written to it.
    while stdin.read(&mut byte).is_ok_and(|read| read > 0) {}
    // An empty text would be borne by every marked process.
    if !run.is_empty() {
        sweep::end_all(run);
    }
    ExitCode::SUCCESS
}
