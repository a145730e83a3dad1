//! Connections over the network as pipes, which end, and all that is open on them ends with them; and POSTs that belong to none.

// HTTP+SSE of 2024-11-05.
pub(crate) mod sse;
// WebSocket.
pub(crate) mod websocket;
// One message a line.
pub(crate) mod lines;
// Bodies for an HTTP server that is no upstream.
mod courier;

pub use courier::Courier;
