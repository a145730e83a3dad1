//! A child process as a pipe.

// A child process as a pipe: started in its own process group with exactly the environment it was given.
mod child;
/// How many children are started at once.
pub mod start_limit;
/// What a child writes to stderr: drained always, its last lines kept.
mod stderr;
/// How many lines of stderr are logged: one share for each upstream, for all its children and across restarts.
mod stderr_log;
// What a child writes to stdout that is no message, as long as none was one: counted, and the first line kept.
mod stray_output;
// The part of an instance that its children share: their turn to start, and their share of the log.
mod children;
// A child process from its start to its proven end: the leader reaped, and nothing left of its group, nor of those who bear its mark.
mod reaper;
// A child's own words in a cause.
pub(crate) mod diagnosis;

pub(crate) use child::SpawnFault;
pub use child::{Child, ChildSpec, start};
pub use children::Children;
pub(crate) use stderr::StderrTail;
#[cfg(test)]
pub(crate) use stderr::drain;
#[cfg(test)]
pub(crate) use stderr_log::StderrLog;
pub(crate) use stray_output::StrayOutput;
