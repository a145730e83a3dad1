//! One instance of an upstream: its parts, and what its link tells them.

// Whether a call may go out now, or waits, or is refused.
pub(crate) mod admission;
// What keeps calls from an upstream, of all its instances together: rates, retries, ends of a child.
mod bounds;
// What an upstream offers: read, kept fresh, and kept on disk for the next start.
pub mod inventory;
// What is wanted of an upstream beside its answers: resource updates, list changes, log messages.
pub(crate) mod subscriptions;
// What an upstream asks while its calls go on: whose question it is, whether they can be asked, and the wait for the answer.
pub(crate) mod questions;
// Results that come in chunks after their answer: bounded, folded into one result.
pub(crate) mod chunks;
// Who hears of the progress of a task that is driven: whatever is told under its id, the latest alone.
pub(crate) mod task_progress;
// What an upstream tells, on its way to clients: no secret is quoted in it.
pub(crate) mod masked;
// One instance as its parts, whatever link it has just now.
mod parts;
// Keeps on disk what an upstream offers, as it changes; and takes it from there, until it was read anew.
pub(crate) mod persist;

pub(crate) use parts::{Instance, SECOND};
