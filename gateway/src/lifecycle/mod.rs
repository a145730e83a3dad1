//! The ground: the task tree, and the board on which every upstream's health stands.

mod board;
pub mod chain;
mod health;
mod orders;
mod seldom;
mod steady;
mod stretch;
mod tasks;
mod traffic;

pub use board::{Board, Seat};
pub use health::{Health, LastError, State};
pub use orders::{NotOrdered, Order, Ordered};
pub use seldom::seldom;
pub use steady::steadily;
pub use stretch::Stretch;
#[cfg(test)]
pub(crate) use stretch::tests::turns_beside;
pub use tasks::Tasks;
pub use traffic::Traffic;
