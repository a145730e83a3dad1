//! The side of the clients: both eras over Streamable HTTP, HTTP+SSE, WebSocket and stdio, each request made into a `Call`.
//!
//! The main items are [`McpService`] (the endpoint over HTTP), [`stdio`] (one client on stdin and stdout), [`listen`] (the accept loop with
//! its limits and TLS) and [`GuardLayer`] (checks of `Host` and `Origin`). The crate is handed a [`trunkline_call::Handler`] and does not
//! know what stands behind it.
//!
//! Invariants:
//!
//! - Host, origin, size and token are checked before a frame is read.
//! - The JSON-RPC id of a client is echoed exactly and never used as a key.
//! - Nothing waits between reading a frame and handing on its call. A slow client delays only its own replies.
//! - Sessions, event ids and sealed states belong to a principal. Those of others answer like unknown ones.

/// Configuration of the clients' side: checked values that `config` makes from the files.
pub mod config;
// Streamable HTTP: one endpoint for both eras.
mod http;
/// The listener: connections of clients, bounded, timed and checked before a request is read.
pub mod listen;
/// The transport over stdin and stdout: one client, both eras mixed.
pub mod stdio;
// What every transport towards clients shares.
mod edge;
// The state of a handshake client.
mod session;
// A call under way: its reply is read into frames for the client.
mod running;
// What is written to a client: results, questions and errors in its own words.
mod response;
// What a frame of a client means, by its era.
mod eras;
// Questions of upstreams on their way to clients of both eras.
/// Parked calls that wait for a retry of a stateless client, and the sealed states that lead back to them.
pub mod parking;
mod questions;
// What reads states, batches, hosts and origins here, as plain functions, for programs that test it.
#[doc(hidden)]
pub mod fuzzing;

pub use http::{McpService, ShownSession};
pub use listen::{Connections, GuardLayer, Network};

pub(crate) use trunkline_call as call;
pub(crate) use trunkline_foundation::{health, memory, metrics, runtime, secrets};
pub(crate) use trunkline_protocol as protocol;
#[cfg(test)]
pub(crate) use trunkline_protocol::steps;

#[cfg(test)]
mod scripted;
