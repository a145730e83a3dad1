//! What an upstream asks while its calls go on: whose question it is, whether they can be asked, and the wait for the answer.

mod kind;
mod owner;
mod question;

pub(crate) use kind::Kind;
pub(crate) use question::{Refused, Terms, put};

#[cfg(test)]
mod tests;
