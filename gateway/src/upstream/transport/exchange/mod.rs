//! One request on a link: what is sent, where its frames wait, why it has no answer.

// What is sent on a link, and how it becomes a frame.
mod request;
// Why an exchange has no answer.
mod lost;
// Where the frames of one exchange wait for whoever reads it: bounded, no task, no channel.
pub(crate) mod mailbox;

pub(crate) use lost::Lost;
pub(crate) use request::Request;
