//! The ground: the task tree, and what polls, paces and watches tasks.

// How a future is polled: only when it was woken, and again at once when it wakes itself.
pub mod poll;
// Timers: used again, and believed only after what could be read was read.
pub mod timer;
// The task tree: every task has an owner that waits for it and a token that ends it.
mod tasks;
// Work whose size a peer chooses.
mod aside;
// Work that may take longer than a millisecond: it waits for a thread beside the workers.
mod offload;
// How long one task may go on at a stretch: whoever reads or writes what never ends lets others have their turn.
mod fair_share;
// Reports a worker that stands: one that has been at one task for longer than anything may take there.
pub mod watchdog;
// What this process has of the system that it runs on, and tells it.
pub mod system;
// When each kind of complaint was last said, so that a flood of one kind is a line now and then.
pub mod complaints;
// A hash for tables that every call looks into.
mod keyed;
// A stream, watched: what comes in, whether what goes out is taken, and that the last word arrives.
pub mod watched;

// A folder for one test.
#[cfg(any(test, feature = "test-support"))]
mod scratch;

pub use aside::aside;
pub use fair_share::FairShare;
#[cfg(any(test, feature = "test-support"))]
pub use fair_share::turns_beside;
pub use keyed::Keyed;
pub use offload::{Overloaded, offload};
#[cfg(any(test, feature = "test-support"))]
pub use scratch::Scratch;
pub use tasks::Tasks;
