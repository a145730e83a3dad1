//! Timers: used again, and believed only after what could be read was read.

// Timers that are used again.
mod reused;
// When a timer is believed.
pub mod late;

pub use reused::{Timer, Timers};
