//! Tasks of an upstream, driven for callers that know none.

// Drives a task to its end where the caller knows none.
mod driver;
// The questions of a driven task of a stateless upstream: put to the caller, and their answers gathered.
mod questions;
// A listen call's reply that tells how tasks of a stateless upstream stand.
mod listen;
// Who hears of the progress of a task that is driven: whatever is told under its id, the latest alone.
mod progress;
// How an instance takes a call: plain, as a task that is driven for its caller, or as something to listen to.
mod take;
// What stands in the messages about tasks: of the handshake's form and of the extension's.
pub(crate) mod form;

pub(crate) use progress::TaskProgress;
pub(crate) use take::{take, withdraw};
