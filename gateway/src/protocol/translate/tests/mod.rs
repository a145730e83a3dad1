//! The translator, part by part, and its laws.

mod definitions;
mod failures;
mod laws;
mod questions;
mod results;
mod rig;
