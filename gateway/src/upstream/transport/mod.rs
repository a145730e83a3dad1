//! Live connections to upstreams: what is sent, what belongs to it, how it ends.

// One request on a link: what is sent, where its frames wait, why it has no answer.
pub(crate) mod exchange;
// The questions of an upstream that are open on one link, and how the link answers them.
pub(crate) mod questions;
// A live connection to an upstream, and one request on it with the frames that belong to it.
pub(crate) mod link;
// Conditions that keep an upstream from being well while it is up.
pub(crate) mod condition;
// Who hears what arrives on a link and belongs to no exchange.
pub(crate) mod events;
// Whether anything was heard of an upstream since somebody last began to listen.
pub(crate) mod liveness;
// Random numbers that spread retries over time.
pub(crate) mod jitter;
// The tasks that a link's calls were given.
mod task_tokens;
// What we say of ourselves to upstreams: never a client's name, and no capability that nobody has.
pub(crate) mod identity;
// Any duplex of frames as a link.
pub(crate) mod pipe;
// A child process as a pipe.
pub(crate) mod stdio;
// Streamable HTTP as a link: our own connections, sessions, streams.
pub(crate) mod http;
// Where upstreams on the network are: addresses, connections.
mod dial;
#[cfg(test)]
pub(crate) mod recorder;
// HTTP+SSE, WebSocket and lines over a connection as pipes.
pub mod remote;
