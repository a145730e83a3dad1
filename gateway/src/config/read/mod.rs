//! The merged configuration while it is read: sections, units, and the words that a person most likely meant.

// The merged configuration while it is read: values with their places, and the faults found so far.
mod reading;
// One table of the merged configuration: its keys are taken one by one, and what is left is unknown.
mod section;
// What each key takes, noted while nothing is read.
mod kind;
// Durations and sizes as people write them.
mod units;
// What a configuration says, key by key, each with where it is written.
mod written;
// The known word that somebody most likely meant.
pub(crate) mod nearest;
// Shells that read commands from their arguments.
pub(crate) mod shell;

pub(crate) use kind::{ANY, Kind, Sketch};
pub(crate) use reading::{Part, Reading};
pub(crate) use section::Section;
pub(crate) use units::{duration, size};
