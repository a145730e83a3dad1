//! Timers: used again, and believed only after what could be read was read.

// Timers that are used again.
mod reused;
// When a timer is believed.
pub mod late;
// How fast what a peer has begun must come.
mod pace;

pub use pace::Pace;
pub use reused::{Timer, Timers};
