//! Who is at the other end of a link: its era, its revision, what it offers.

/// Which era an instance speaks with its upstream, and what came of trying one.
pub mod eras;
/// Speaks to handshake upstreams: `initialize`, and what their questions are answered with.
pub mod handshake;
/// Which era an upstream speaks: asked once per link, remembered with an age limit.
pub mod probe;
/// Who is at the other end of a link, once that is known: its era, its revision, what it offers.
pub mod profile;
// Speaks to stateless upstreams: `server/discover`, and what its answer says of the era.
mod discover;
/// Why an upstream did not come up, or a request of our own was not answered.
pub mod fault;
/// What was lost with a session at an upstream: its client is told in the first result of the session that came in its place.
pub mod loss;
/// Meets what lists and calls tools, each by itself, and knows nothing else of the protocol.
mod tools_only;
// The name of a call's principal, as an upstream is told it.
mod principal;

pub use profile::{Offer, Peer};
