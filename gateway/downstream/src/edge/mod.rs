//! What every transport towards clients shares.

// What every transport towards clients shares: the handler behind it, who we say we are, the task level.
mod shared;
// Who made the last call on a connection.
mod last_caller;
// Legacy or modern: which kind of client speaks, seen from each frame anew.
pub(crate) mod client_era;
// The open calls of one client connection or session: where a cancellation finds the call it means.
pub(crate) mod open_calls;
// The handshake of legacy clients: `initialize` answered from what the gateway offers, in the client's revision.
pub(crate) mod handshake;
// A call under way, as whoever asks its client may act on it.
mod call_context;
// What the headers of a request say, found in one walk.
mod heads;

pub(crate) use call_context::CallContext;
pub(crate) use handshake::Asks;
pub(crate) use heads::Heads;
pub(crate) use last_caller::LastCaller;
pub(crate) use shared::Edge;
