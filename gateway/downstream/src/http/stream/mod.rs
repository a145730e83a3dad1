//! Streams of server-sent events, and what they are fed from.

// A stream of server-sent events to one client connection, with comments that keep it alive.
mod events;
// What streams are fed from: a modern call, a legacy call's replay, a session's notices.
mod feeds;
// The body of a response: one JSON text, a stream of events, or nothing.
mod body;

pub(crate) use body::Body;
pub(crate) use events::{Fed, Feed, Stream};
pub(crate) use feeds::{CallFeed, NoticeFeed, ReplayFeed};
