//! What an upstream asks while its calls go on: whose question it is, whether they can be asked, and the wait for the answer.

mod kind;
mod owner;
mod pages;
mod question;

pub(crate) use kind::{Kind, configured};
pub(crate) use pages::Pages;
pub(crate) use question::{Refused, Terms, next_key, put};

#[cfg(test)]
mod tests;
