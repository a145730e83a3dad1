//! What carries frames as bytes: lines, server-sent events, and room for large messages.

// Newline-delimited frames.
pub mod lines;
// Both ends of a message that is not taken.
mod edges;
// Server-sent events: decoded as browsers do, encoded, bounded.
pub mod sse;
// WebSocket frames of clients: unmasked, joined, checked, bounded.
pub mod websocket;
// Where a message is put together that is larger than its reader's buffer.
mod store;

pub use store::{Store, Untaken};
