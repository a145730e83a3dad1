//! What becomes of each call: answered here, by one upstream, or by all of them.

// What concerns one upstream: calls by name, by URI, by reference.
mod route;
// What concerns all upstreams: the four lists.
mod lists;
// Gives the results of an upstream with marked URIs their public URIs; all other results are never looked into.
pub(crate) mod rewrite;
// How long an upstream had a call whose reply another reply is read through.
mod timing;
// What upstreams and clients have beyond the protocol.
mod extensions;
// What the gateway says of itself: the union of what its upstreams can, and their instructions.
mod discover;
// Calls at upstreams that each principal logs in to for itself, by names that are not offered to the caller now.
mod login;
// What is said of a tool that is kept from clients until somebody approves it.
mod held;
// What is said of a name or URI that only upstreams can own that were never seen.
mod unseen;

pub(crate) use discover::result;
pub(crate) use extensions::admit;
pub(crate) use lists::{Unread, list};
pub(crate) use route::Routes;
pub(crate) use timing::Stopwatch;
