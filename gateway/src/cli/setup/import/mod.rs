//! `trunkline import`: takes the servers of hosts over into a configuration of our own.

// What is found in the files of hosts.
mod scan;
// What a value looks like: a token, a pair, an address with a password.
mod shape;
// Secrets that stand in a host's file: each is replaced by a reference.
mod secrets;
// The servers as TOML.
mod toml;
// The command.
mod command;

pub(crate) use command::run;
pub(crate) use scan::{entry_in, entry_of};
