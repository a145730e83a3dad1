//! The guard: a small process that outlives the gateway by a moment, and ends whatever of its children is left then.

use super::{linux, sweep};
use std::io::Read;
use std::process::ExitCode;

/// The hidden command that it is.
pub(super) const GUARD: &str = "guard-upstreams";
/// What the system calls its process.
const NAME: &str = "upstream-guard";

/// Waits for the end of stdin, whose other end only the gateway holds; then ends everybody who bears a mark of its run.
pub fn guard(run: &str) -> ExitCode {
    // Who ends all that is called like the gateway is not to end it too.
    linux::be_called(NAME);
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
