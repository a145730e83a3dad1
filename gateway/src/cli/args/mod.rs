//! The command line as it is typed, and the configuration that it leads to.

// The command line as it is typed.
mod parse;
// From the command line to the configuration.
pub(crate) mod settings;

pub(crate) use parse::{Args, Command, Look, Restart, Serve, Shared, Status};
pub(crate) use settings::Flag;
