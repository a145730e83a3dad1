//! The ids that upstreams gave the sessions of clients, kept on disk, sealed: after a restart of the gateway a client session that goes on
//! finds its own sessions again. Written aside; no call waits for it.

// One kept session, as the bytes that are sealed.
mod record;
// The files of runs: one each, locked while the run lives, taken over by the next.
mod file;
// What is kept, as its upstreams and clients find it, and the task that writes it.
mod store;

pub(crate) use record::{Earlier, Kept, Place};
pub use store::KeptSessions;
#[cfg(test)]
use store::Secrets;

#[cfg(test)]
mod tests;
