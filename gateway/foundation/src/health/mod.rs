//! The ground: the task tree, files that are ours alone, what is secret, the budget of memory, and the board on which every
//! upstream's health stands.

// The health board: what every upstream is doing, written by its supervisor, read by whoever shows it.
mod board;
// What is known of one upstream: where it stands, since when and why, and what was last wrong with it.
pub mod row;
// Why something happened: a code, our words, those of others, and what the operator does next.
mod cause;
// The kinds of causes, as programs tell them apart.
mod code;
// What a person orders an upstream to do, until its supervisor has done it.
mod orders;
// How much an upstream has to do: counted as it happens, read by whoever shows it.
mod traffic;
// Which gateways stand in one chain: none may be its own upstream, at whatever distance.
pub mod chain;

pub use board::{StatusBoard, StatusHandle};
pub use cause::Cause;
pub use code::CauseCode;
pub use orders::{NotOrdered, Order, Ordered};
pub use traffic::Traffic;
