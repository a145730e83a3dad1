//! A door for programs that feed it nonsense and count its steps: what reads the bytes of peers, as plain functions.
//!
//! It is no interface: what stands here follows the parsers, and may change with every one of them.

pub use crate::downstream::fuzzing as downstream;
pub use crate::router::fuzzing as router;
pub use crate::steps;
pub use crate::upstream::fuzzing as upstream;

/// Configuration files.
pub mod config {
    pub use crate::config::fuzzing::{Format, expanded, faults};
}
