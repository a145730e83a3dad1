//! `trunkline install` and `uninstall`: one entry in the file of a host, and out of it again.

// The entry, as each host writes it.
mod entry;
// Puts the entry into a text and takes it out; all else in it stays as it is.
mod edit;
// The same in YAML.
mod yaml;
// The host's own program that edits its file.
mod own_program;
// Which lines of a file are changed.
mod diff;
// The variables that a host needs beside it.
mod needs;
// The folders that are made for a file.
mod folders;
// The commands.
mod command;

pub(crate) use command::{install, uninstall};
pub(crate) use entry::NAME;
