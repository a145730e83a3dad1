//! What an upstream asks while its calls go on: whose question it is, whether they can be asked, and the wait for the answer.

// The three kinds of question: what a client must have declared, and what is said where nobody can be asked or answers.
mod kind;
// Whose question it is: the stream it came on, the session that has the link for itself, the only one who has calls open.
mod owner;
// The pages that an upstream has had sessions open: who is told when one was seen to.
mod pages;
// One question from the moment it was read to its answer: refused at once, or put to its owner and waited for.
mod question;
// The part of an instance that takes questions of its upstream: answered from the configuration, put to a client, or refused.
mod intake;

pub(crate) use intake::Questions;
pub(crate) use kind::{Kind, configured};
pub(crate) use question::next_key;

#[cfg(test)]
mod tests;
