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

pub use exchange::Pipe;
pub(crate) use exchange::PipeExchange;
pub(crate) use reader::answered_id;
pub use reader::{ReadEnd, read};
pub use writer::write;
