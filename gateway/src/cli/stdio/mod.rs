//! `trunkline stdio`: the one client that is on stdin and stdout, served in process, or by a gateway that many clients share.

// What is open between a client and a gateway, and what the next gateway is told: bytes in, bytes out.
mod ledger;
// Ids of frames, put in the place of others.
mod ids;
// Lines of frames, read one by one within the memory that there is.
mod reader;
// The way to the gateway that runs for the same configuration; started where there is none.
mod join;
// The client leaves by closing stdin: from then on everything has an end.
mod parting;
// Between the client and one gateway, to the end of either side.
mod lines;
// The bridge between a client and that gateway, whichever it is just now.
mod bridge;
// The gateway that is started for those that share it.
mod started;
// Serves in process.
mod alone;

use super::args::Shared;
use super::args::setup::Stdio;
use super::process::Failure;

pub(super) use alone::run_for_command;
pub(super) use started::run as run_started;

/// Serves until stdin ends. Nothing but frames is written to stdout.
pub(super) fn run(before: Shared, stdio: Stdio) -> Result<(), Failure> {
    let shared = before.join(stdio.shared);
    if stdio.is_shared { bridge::run(&shared) } else { alone::run(&shared) }
}
