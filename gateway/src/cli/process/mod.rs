//! The process: its runtime, and how a command can fail.

// The one place where a runtime is made.
pub(crate) mod runtime;
// How a command can fail, and with which exit code.
pub(crate) mod failure;
// Tables for a terminal.
pub(crate) mod table;
// What a command answers on stdout.
mod answer;
// The browser of the person at this machine.
pub(crate) mod browser;
// Stdin and stdout, as a host has made them.
mod pipes;

pub(crate) use answer::answer;
pub(crate) use failure::Failure;
pub(crate) use pipes::{Input, OtherEnd, Output};
