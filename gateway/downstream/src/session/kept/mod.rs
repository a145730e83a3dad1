//! What is kept of sessions for the next run of the gateway.

// Those that have ended, and whose ids still say that they may be revived.
mod ended;
// What clients want lastingly: the level of log messages, and their subscriptions.
mod wishes;

pub(crate) use ended::Ended;
pub(crate) use wishes::{Change, Earlier, KeptWishes, Wishes};
