//! Trunkline: one MCP endpoint in front of many MCP servers.
//!
//! Every client request becomes one `Call`; whatever comes back is one `Reply`; era and transport exist only at the two edges.
//! A handler is a plain function from `Call` to `Reply`: taking a call never waits, waiting happens in the reply.

/// The messages of every MCP revision.
pub use trunkline_protocol as protocol;

/// Tasks, processes, memory, health, secrets and metrics.
pub use trunkline_foundation::{health, memory, metrics, process, runtime, secrets};

/// Calls, replies, callers and refusals.
pub use trunkline_call as call;

// Connections to upstreams.
pub(crate) use trunkline_client::{peer, transport};

/// The servers behind us.
pub mod upstream;

/// The clients before us.
pub use trunkline_downstream as downstream;

/// The one match: a call is answered here, by one upstream, or by many; the catalog.
pub mod router;

/// Who may call.
pub use trunkline_policy as policy;

/// Logging, the limit of the log, the metrics of calls, the recorder.
pub use trunkline_telemetry as telemetry;

/// What an operator sees and orders: probes, status, orders.
pub use trunkline_admin as admin;

/// Files, environment and flags become one checked `Config`, or every fault at once.
pub mod config;

/// The composition root: all parts, the one visible chain, the drain.
pub mod gateway;

/// The commands, one file each.
pub mod cli;

/// Counts of work, in builds with debug assertions.
pub use protocol::steps;

/// What reads the bytes of peers, for programs that test it.
#[doc(hidden)]
pub mod fuzzing;
