//! The clients before us: both eras over Streamable HTTP and stdio, each request made into a `Call`.

// What the clients' side may be told: checked values, made from the files by `config`.
pub mod config;
// Streamable HTTP: one endpoint for both eras.
mod http;
// Our own stdin and stdout: one client, both eras mixed, frames read in order, answers written as they come.
pub mod stdio;
// The listener: connections of clients, bounded, timed and checked before a request is read.
pub(crate) mod listen;
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
mod questions;
// What waits for a stateless client's retry, and the sealed state that leads back to it.
pub(crate) mod parking;
// What reads states, batches, hosts and origins here, as plain functions: see [`crate::fuzzing`].
#[doc(hidden)]
pub mod fuzzing;

pub use http::{McpService, ShownSession};
pub use listen::{Connections, GuardLayer, Network};

#[cfg(test)]
mod scripted;
