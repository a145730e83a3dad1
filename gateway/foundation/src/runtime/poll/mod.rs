//! How a future is polled: only when it was woken, and again at once when it wakes itself.

// Polls a future only when it was woken: for what is watched beside something that is polled far more often.
mod when_woken;
// Polls a task again at once when it wakes itself, in place of a round through the scheduler.
mod again_on_self_wake;
// Takes the wakes of one task, and holds them back where it is not known yet whether anybody needs them.
mod bell;

pub use again_on_self_wake::repoll_on_self_wake;
pub use bell::{HeldWake, hold_wakes};
pub use when_woken::{Door, poll_when_woken};
