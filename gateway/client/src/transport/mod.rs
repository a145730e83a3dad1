//! Live connections to upstreams: what is sent, what belongs to it, how it ends.

/// Conditions that keep an upstream from being well while it is up.
pub mod condition;
/// Who hears what arrives on a link and belongs to no exchange.
pub mod events;
/// One request on a link: what is sent, where its frames wait, why it has no answer.
pub mod exchange;
/// Streamable HTTP as a link: our own connections, sessions, streams.
pub mod http;
/// Random numbers that spread retries over time.
pub mod jitter;
/// A live connection to an upstream, and one request on it with the frames that belong to it.
pub mod link;
/// Whether anything was heard of an upstream since somebody last began to listen.
pub mod liveness;
/// The questions of an upstream that are open on one link, and how the link answers them.
pub mod questions;
/// The tasks that a link's calls were given.
mod task_tokens;
// What we say of ourselves to upstreams: never a client's name, and no capability that nobody has.
pub(crate) mod identity;
/// Any duplex of frames as a link.
pub mod pipe;
/// A child process as a pipe.
pub mod stdio;
// Where upstreams on the network are: addresses, connections.
mod dial;
#[cfg(test)]
pub(crate) mod recorder;
/// HTTP+SSE, WebSocket and lines over a connection as pipes.
pub mod remote;
