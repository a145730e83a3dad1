//! What is wrong with a configuration, for a person to read.

// What is wrong with a configuration: what, where, and what to do, for a person to read.
mod report;
// One line of a file as it may be shown: with its position, without secrets and control bytes.
mod excerpt;

pub use excerpt::printable;
pub(crate) use excerpt::{excerpt, line_of};
pub use report::{Fault, Faults, Place, Severity, count};
pub(crate) use report::{Layout, SHOWN_MAX};
