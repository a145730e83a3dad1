//! What is recorded of the gateway's work, and where it can be looked at.

// What is recorded and where it can be looked at: checked values, made from the files by `config`.
pub mod config;
// The log: on stderr only, text for people or JSON for programs, never waited for.
pub mod logging;
// The recorder behind the metrics.
pub mod metrics;
// The outermost layer of the chain: counts and times every call.
pub mod observe;
// A line for each call, order and configuration, in a file of its own.
pub mod audit;
// A line of the log for each call, where that is asked for.
mod access;
// The calls under way, and the last ones that ended.
pub mod calls;
// Carries finished log lines to stderr without ever waiting for whoever reads it.
mod lines;
// How much of the log one upstream may take: what flaps or breaks the protocol again and again fills it for all others.
mod ration;
// What is counted and measured, by name and labels, and the text that Prometheus reads.
mod recorder;
// What this process and the children take of the system, as the system tells it.
mod processes;
// What became of the configuration since the start: how often another one was put into force, and what is wrong with the newest.
pub mod reloads;

#[cfg(test)]
pub(crate) use recorder::Registry;
