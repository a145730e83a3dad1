//! What is shown of an upstream: its phase, its conditions, and what was last reported.

// What an upstream tells that belongs to no call.
pub mod notice;
// The conditions of an instance that hold now.
mod condition;
// What was last said of an upstream, so that it is not said again.
mod reported;
// What instances beside the primary one show at their upstream.
mod siblings;
// The part of an instance that shows how it fares.
mod record;
// Shows an upstream as `degraded` while a condition holds, with the reason.
mod degraded;
// What an upstream does wrong, and what fails with it.
mod failures;
// How an instance beside the primary one shows that it does not come up.
mod beside;
// How a change of state is shown: on the board, in the metrics, and in one line of the log.
mod transition;

pub(crate) use crate::transport::condition::Condition;
pub(crate) use record::Status;
pub(crate) use transition::being_ended;
