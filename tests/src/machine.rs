//! The machine: a gateway before ten scripted upstreams, four clients that call them without rest, and faults put into some of
//! them by a seed. What happened is told as a history, for the judge.

pub mod fault;
pub mod given_up;
mod lines;
pub mod load;
pub mod look;
pub mod place;
pub mod round;
pub mod stage;
pub mod steady;

pub use fault::{Fault, Kind};
pub use load::Load;
pub use round::{Hold, Plan, round};
pub use stage::Stage;
pub use steady::Steady;
