//! The machine: a gateway before scripted upstreams of every transport, four clients of two principals that call them without rest, a third
//! principal that is hostile, and faults put into some of the upstreams by a seed. The configuration is full of secrets, which some
//! upstreams quote. What happened is told as a history, for the judge.

pub mod callers;
pub mod fault;
pub mod given_up;
mod guest;
pub mod hostile;
mod lines;
pub mod load;
pub mod look;
pub mod place;
pub mod round;
mod rules;
mod secured;
mod setting;
mod siege;
pub mod stage;
pub mod steady;
mod ways;

pub use fault::{Fault, Kind};
pub use load::Load;
pub use round::{Hold, Plan, round};
pub use stage::Stage;
pub use steady::Steady;
