//! What an HTTP response means: a body, a stream of events, a refusal.

// How one POST is answered: a JSON body, a stream, or a refusal.
pub(crate) mod answer;
// What a response's body holds: read whole within a limit, and taken apart.
pub(crate) mod body;
// A stream of events: read as it comes, resumed where that is possible, answered aside.
pub(crate) mod sse;
// How far a stream was read, so that it can be resumed there.
mod place;
// An answer in parts: events of other names than messages have.
mod fragments;
// What a response that says no means for its request: an error of the upstream's own, a lost session, or just no.
pub(crate) mod refusal;
// The response by which a connection becomes a WebSocket.
pub(crate) mod upgrade;
// How long an upstream asks to be left alone: `Retry-After`, in seconds or as a date.
mod retry_after;
// What reads the bytes of HTTP upstreams here, as plain functions: see [`crate::fuzzing`].
pub(crate) mod fuzzing;

pub(crate) use place::Place;
pub use retry_after::pause;
