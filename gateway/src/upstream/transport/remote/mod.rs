//! Connections over the network as pipes, which end, and all that is open on them ends with them; and POSTs that belong to none.

// HTTP+SSE of 2024-11-05.
pub(crate) mod sse;
// WebSocket.
pub(crate) mod websocket;
// One message a line.
pub(crate) mod lines;
// Bodies for an HTTP server that is no upstream.
mod courier;
// Logins that are begun by a page of the gateway, and the end of those that are kept.
pub mod logins;

pub use crate::upstream::transport::http::credentials::oauth::login::{Page, log_in};
pub use crate::upstream::transport::http::credentials::oauth::{IdentityProvider, LoggedIn, logged_in};
pub use courier::Courier;
