//! The questions of an upstream that are open on one link, and how the link answers them.

// A link as the questions of its upstream see it: which calls are open on it, and how it is answered.
pub(crate) mod asker;
// The questions of an upstream that are open on one link: whose each is, and what is said where nobody answers.
mod open;

pub use asker::{Answer, AnswerTo, Asker};
pub(crate) use open::PendingQuestions;
pub use open::{Question, Whose};
