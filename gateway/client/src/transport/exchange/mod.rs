//! One request on a link: what is sent, where its frames wait, why it has no answer.

// What is sent on a link, and how it becomes a frame.
mod request;
// Why an exchange has no answer.
mod lost;
/// Where the frames of one exchange wait for whoever reads it: bounded, no task, no channel.
pub mod mailbox;

// How many calls one upstream may have at once, and the permit that each holds.
mod permit;
// How often a call's progress is told: at most twenty times in any second, the last of it always.
mod progress_rate;

pub use lost::{Lost, Withheld};
pub use permit::{ConcurrencyLimit, Permit};
pub use progress_rate::ProgressRate;
pub(crate) use request::Request;
