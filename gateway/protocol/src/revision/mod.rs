//! The dated protocol versions, their eras, and the one dialect before them.

// The dated protocol versions, their eras, and which of them a payload must be looked into for.
mod table;
// The dialect of 2024-10-07, taken for 2024-11-05: a tool's text in place of its content.
pub mod dialect_2024_10_07;

pub use table::{Era, Features, Gap, Part, Revision};
