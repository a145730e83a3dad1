//! HTTP+SSE and WebSocket: what lasts as long as one connection, with the same frames as stdio.

// HTTP+SSE of 2024-11-05: a stream of events down, POSTs up; the stream is the session.
mod two_endpoints;
// Whether a request becomes a WebSocket.
mod upgrade;
// A WebSocket: its messages are read in order, and answered as over stdio.
mod websocket;
// The one that writes to a WebSocket.
mod writer;

pub(super) use two_endpoints::{Clients, MESSAGES, Peer, STREAM};
pub(super) use upgrade::{WEBSOCKET, upgrade};
