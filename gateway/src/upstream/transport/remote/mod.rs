//! Connections over the network as pipes: they end, and all that is open on them ends with them.

// HTTP+SSE of 2024-11-05.
pub(crate) mod sse;
// WebSocket.
pub(crate) mod websocket;
// One message a line.
pub(crate) mod lines;
