//! Tasks of an upstream, driven for callers that know none.

// Drives a task to its end where the caller knows none.
mod driver;
// The questions of a driven task of a stateless upstream: put to the caller, and their answers gathered.
mod questions;
// A listen call's reply that tells how tasks of a stateless upstream stand.
mod listen;
// How an instance takes a call: plain, as a task that is driven for its caller, or as something to listen to.
mod take;

pub(crate) use take::{take, withdraw};
