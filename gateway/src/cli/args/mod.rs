//! The command line as it is typed, and the configuration that it leads to.

// What may stand before every command and after it.
mod shared;
// The command line of what sets hosts and the configuration up.
pub(crate) mod setup;
// The command line as it is typed.
mod parse;
// From the command line to the configuration.
pub(crate) mod settings;

pub(crate) use parse::{Args, Command, Restart, Serve, Status};
pub(crate) use settings::Flag;
pub(crate) use shared::{Look, Shared};
