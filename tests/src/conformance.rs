//! The official conformance suite: its two pinned editions, what it is run against, and how its verdicts are compared.
//!
//! Its scenarios have clocks of their own, and the machine may be crowded: at most four runs go on at once, most of the time
//! waiting, each against processes of its own, and what looks worse is looked at again before it counts.

mod check;
mod compare;
mod setting;
mod suite;

pub use check::{Check, Checks, Status};
pub use compare::{Difference, compare};
pub use setting::{Behind, Era, Server, Setting, Transport};
pub use suite::{Edition, Leg, Suite};
