//! Trunkline: one MCP endpoint in front of many MCP servers.
//!
//! Every client request becomes one `Call`; whatever comes back is one `Reply`; era and transport exist only at the two edges.
//! A handler is a plain function from `Call` to `Reply`: taking a call never waits, waiting happens in the reply.

/// Pure MCP: bytes in, bytes out.
pub mod protocol;

/// The narrow waist: `Call`, `Reply`, `Handle`.
pub mod call;

/// The clients before us.
pub mod downstream;

/// The one match: answered here, by one upstream, or by many; the catalog.
pub mod router;

/// The servers behind us.
pub mod upstream;

/// Who may come in.
pub mod policy;

/// What is shown: logs, metrics, health.
pub mod telemetry;

/// The composition root: all parts, the one visible chain, the drain.
pub mod gateway;

/// What was asked for: files, environment, flags, checked at once.
pub mod config;

/// What a person types, sees and gets back.
pub mod cli;

/// Ground: the task tree and the health board.
pub mod lifecycle;
/// Ground: every metric's name.
pub mod signals;
