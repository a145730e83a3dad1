//! The ground: the task tree, and the board on which every upstream's health stands.

mod board;
mod steady;
mod tasks;

pub use board::{Board, Health, Seat, State};
pub use steady::steadily;
pub use tasks::Tasks;
