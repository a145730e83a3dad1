//! Streamable HTTP as a link: our own connections, sessions, streams.

// The way to an HTTP upstream, whatever session there is just now: connections, fixed headers, limits.
mod client;
// The one way out: every request to an HTTP upstream is sent here, and sent on where the upstream says that it is to be.
mod send;
// One session with an HTTP upstream: what its requests say in their headers.
mod session;
// One POST an exchange, polled in its caller's task.
mod post;
// What is sent beside the exchanges: notifications, answers to what the upstream asks, the end of a session.
mod one_way;
// The background stream of a legacy session: what the upstream tells unasked.
mod background_stream;
// A stream of events that stands by itself, and POSTs beside it: what HTTP+SSE needs of HTTP.
mod event_stream;
// What an HTTP response means: a body, a stream of events, a refusal.
mod response;
// What an HTTP status that says no means: decided there alone.
mod status;
// When nothing is sent to an HTTP upstream: after failures in a row, or while it asked for a pause.
mod breaker;
/// One request to a server that is no upstream, such as one that gives out tokens: on a connection of its own, bounded, nothing followed.
pub mod once;
// The access token of a request, and the source that supplies it.
mod token;
// Connections to an HTTP upstream: found, opened, kept for their next use.
mod connection;

pub use breaker::Breaker;
pub use client::HttpClient;
pub(crate) use connection::FairPermit;
pub use connection::Origin;
pub(crate) use event_stream::EventStream;
pub(crate) use post::HttpExchange;
pub(crate) use response::fuzzing;
pub use response::pause;
pub use session::HttpSession;
pub use status::{HttpStatusError, StatusClass};
pub use token::{LoginAdvice, Token, TokenSource};
