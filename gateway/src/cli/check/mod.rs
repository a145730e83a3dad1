//! `trunkline check`: what is wrong or doubtful in a configuration; nothing is started.

// The command: reads the configuration, prints its faults and doubts.
mod command;
// `trunkline check -`: reads the configuration from stdin.
mod stream;
// The faults and doubts of a configuration, and their output.
mod report;
// What may well be meant so in a configuration, and may well not: for `trunkline check`.
mod doubts;
// The logins that principals have of their own: how many there are, and which have ended.
mod personal;
// What one who calls would see.
mod view;
// `trunkline doctor`: what keeps servers and hosts from working on this machine.
pub(crate) mod doctor;

pub(crate) use command::run;
