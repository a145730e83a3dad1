//! The state of a handshake client.

// One legacy client's state: who it is, its open calls, its notices and its streams.
pub(crate) mod client;
// The caller of a session's requests, with the rights of one token.
pub(crate) mod requester;
// The table of the legacy clients' sessions: bounded, bound to principals, swept.
pub(crate) mod table;
// Ids that say, sealed, what a gateway needs to go on with the session after a restart.
mod sealed_id;
// What is kept of sessions for the next run.
mod kept;
// Whose the sessions of handshake clients are, and which of them makes room when there are too many.
mod shares;
// What a legacy session hears of unasked: its listen replies, which wait unpolled while no stream is open.
mod notices;
// Messages that wait for a stream of their session.
mod waiting;
// The questions that are open at a handshake client.
mod questions;
// The streams that a session's client can come back for.
mod streams;
// What was sent on one legacy stream, kept so that a client can come back for it; bounded.
mod replay;
// A legacy subscription.
mod subscribe;
// The progress tokens of a handshake client that stay in use, since their calls were given tasks; and what is due under them.
mod task_tokens;

pub(crate) use notices::{SUBSCRIPTIONS_MAX, nothing};
pub(crate) use questions::{ForeignAnswer, Put};
pub(crate) use replay::{Reader, Replay};
pub(crate) use streams::{event_id, parse_event_id};
pub(crate) use subscribe::Subscribing;
