//! Streamable HTTP: one endpoint for both eras.

// Streams of server-sent events, and what they are fed from.
mod stream;
// The endpoint as a `tower::Service`.
mod service;
// A request on its way to its response, as one future.
mod answering;
// What every request to the endpoint shares.
mod endpoint;
// Handshake clients over HTTP: sessions by header, calls that outlive their connections.
mod legacy;
// Stateless clients over HTTP: the response's stream is the call.
mod modern;
// GET and DELETE: a session's streams and its end.
mod ops;
// HTTP+SSE and WebSocket: what lasts as long as one connection, with the same frames as stdio.
mod duplex;
// POST: one frame, or an array of them, sorted by era and kind.
mod post;
// Reads a request's body: once, bounded, without a copy where it came in one piece.
mod read;
// The few shapes that responses have.
mod respond;
// What a POST waits for, and the response that it becomes: JSON, or a stream where that is not enough.
mod work;

pub use service::{McpService, ShownSession};

#[cfg(test)]
mod tests;
