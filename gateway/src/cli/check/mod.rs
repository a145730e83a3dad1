//! `trunkline check`: what is wrong or doubtful in a configuration; nothing is started.

// `trunkline check`: what is wrong or doubtful in a configuration; nothing is started.
mod command;
// What may well be meant so in a configuration, and may well not: for `trunkline check`.
mod doubts;

pub(crate) use command::run;
