//! Telemetry of the gateway: the log, the metrics, the traces and the audit file.
//!
//! The main items are [`logging`] (the log on stderr), [`metrics::Metrics`] (the recorder behind `/metrics`), [`observe::Observe`] (the
//! outermost layer of the chain, which counts, times and traces every call), [`audit`] (a file with a line per call and order) and
//! [`calls::Calls`] (running calls and the last ended ones).
//!
//! Invariants:
//!
//! - Telemetry never delays a call: finished lines and spans are queued, and dropped and counted when a queue is full.
//! - The log goes to stderr only, because stdout may carry MCP frames.
//! - Labels come from tables of bounded size, so the number of series is bounded.

/// The audit file: a line per call, order and configuration.
pub mod audit;
/// Configuration of telemetry: checked values that `config` makes from the files.
pub mod config;
/// The log: on stderr, as text for people or JSON for programs.
pub mod logging;
/// The metrics and their text form.
pub mod metrics;
/// The outermost layer of the chain: counts and times every call.
pub mod observe;
// A line of the log for each call, where that is asked for.
mod access;
/// Running calls, and the last ones that ended.
pub mod calls;
// Carries finished log lines to stderr without ever waiting for whoever reads it.
mod lines;
// How much of the log one upstream may take: what flaps or breaks the protocol again and again fills it for all others.
mod ration;
// What is counted and measured, by name and labels, and the text that Prometheus reads.
mod recorder;
// What this process and the children take of the system, as the system tells it.
mod processes;
/// Results of configuration reloads since the start.
pub mod reloads;

#[doc(hidden)]
pub use recorder::Registry;

pub(crate) use trunkline_call as call;
pub(crate) use trunkline_foundation::{health, memory, runtime, secrets};
pub(crate) use trunkline_protocol as protocol;
