//! Any duplex of frames as a link: a reader that never waits, a writer that takes back, and what is in flight between them.

// Many exchanges over one duplex of frames.
mod exchange;
// The reader of a pipe, which never waits for anyone.
pub(crate) mod reader;
// The writer of a pipe.
pub(crate) mod writer;
// The exchanges in flight on a pipe, found by ids of our own: small, growing, never used twice.
mod in_flight;
// What waits to be written on a pipe.
mod outbox;
// How much of the send queue of a pipe each client may fill.
mod queue_shares;

pub(crate) use exchange::{Pipe, PipeExchange};
#[cfg(test)]
pub(crate) use reader::read;
pub(crate) use reader::{ReadEnd, answered_id};
#[cfg(test)]
pub(crate) use writer::write;
