//! Connections over the network as pipes, which end, and all that is open on them ends with them; and POSTs that belong to none.

/// One message a line.
pub mod lines;
/// HTTP+SSE of 2024-11-05.
pub mod sse;
/// WebSocket.
pub mod websocket;
// Bodies for an HTTP server that is no upstream.
mod courier;

pub use courier::Courier;
