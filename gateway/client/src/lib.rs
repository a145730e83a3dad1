//! Connections to upstreams: child processes, Streamable HTTP, HTTP+SSE, WebSocket and plain sockets, in both eras.
//!
//! The main items are [`transport::link::Link`] (a live connection), [`transport::link::Exchange`] (one request on it),
//! [`transport::events::LinkEvents`] (the receiver of everything that belongs to no request), [`transport::http::TokenSource`] (the
//! supplier of access tokens) and [`peer::Peer`] (era, revision and capabilities of the other end). The crate starts nothing by itself,
//! and knows neither logins nor instances.
//!
//! Invariants:
//!
//! - The id of a request is given by its link. An answer reaches only the exchange with this id.
//! - Dropping an exchange before its answer withdraws the request.
//! - A lost request says if it may have run: only a request that was not sent is sent again.
//! - Headers and tokens of an upstream go to its own origin only.
//! - Everything that an upstream sends is bounded and charged to the memory budget.

/// Configuration of connections: checked values that `config` makes from the files.
pub mod config;
/// The other end of a link: its era, its revision, its capabilities.
pub mod peer;
/// Live connections to upstreams: requests, their frames, and how they end.
pub mod transport;
// Parsers of upstreams' bytes as plain functions, for programs that test them.
#[doc(hidden)]
pub mod fuzzing;

pub(crate) use trunkline_call as call;
pub(crate) use trunkline_foundation::{health, memory, metrics, process, runtime, secrets};
pub(crate) use trunkline_protocol as protocol;
