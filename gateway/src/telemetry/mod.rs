//! What is recorded of the gateway's work, and where it can be looked at.

// What is recorded and where it can be looked at: checked values, made from the files by `config`.
pub mod config;
// The log: on stderr only, text for people or JSON for programs, never waited for.
pub mod logging;
// The recorder behind the metrics.
pub mod metrics;
// The outermost layer of the chain: counts and times every call.
pub mod observe;
// Carries finished log lines to stderr without ever waiting for whoever reads it.
mod lines;
// How much of the log one upstream may take: what flaps or breaks the protocol again and again fills it for all others.
mod ration;
// What is counted and measured, by name and labels, and the text that Prometheus reads.
mod recorder;
