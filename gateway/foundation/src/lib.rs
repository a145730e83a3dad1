//! Services that every other crate uses: tasks, processes, memory, health, secrets and metrics.
//!
//! The main items are [`runtime::Tasks`] (the task tree), [`memory`] (one budget for everything that peers make the gateway keep),
//! [`health`] (the state of every upstream and the commands for it), [`secrets`] (masking and sealing), [`metrics`] (every metric with
//! its description) and [`process`] (child processes).
//!
//! Invariants:
//!
//! - Only `runtime` spawns tasks, and every task has an owner that waits for its end.
//! - Every allocation whose size a peer chooses is charged to the memory budget.
//! - A child process has ended, with its whole process group, before its handle reports the end.

/// The state of every upstream, and commands of an operator.
pub mod health;
/// The memory budget.
pub mod memory;
/// Every metric with its name, description and handles.
pub mod metrics;
/// Starting, tracking and ending child processes.
pub mod process;
/// The task tree, timers, and services of the operating system.
pub mod runtime;
/// Secrets of the configuration, and masking of foreign text.
pub mod secrets;

pub(crate) use trunkline_protocol::{self as protocol, steps};
