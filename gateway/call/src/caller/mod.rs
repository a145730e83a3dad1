//! Who makes a call: principal, grants, what it can be asked, its session.

// Who makes a call: principal, grants, revision, capabilities.
mod identity;
// Whose credential a request bears.
mod principal;
// Who is at the other end of a connection.
mod peer;
// What a request is let in with: whose it is, what it opens, and whether it still counts.
pub mod credential;
// What roles let their holders see and use: rules over public names.
pub mod rights;
// Detection of dot segments in URIs.
mod dot_segments;
// A handle on what a principal may see and use.
mod grants;
// A legacy session as the inside knows it: whose questions are its, how it is asked, and when it has ended.
mod client_session;
// Of which trace of its caller a call is a part, and the spans that are made of it.
pub mod trace;
// Hosts that take only so many tools.
mod host;

pub use client_session::{ClientSession, SessionRights};
pub use grants::{Grants, WeakGrants};
pub use identity::{Caller, Can};
pub use peer::Peer;
pub use principal::Principal;
