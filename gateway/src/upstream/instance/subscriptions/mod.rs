//! What is wanted of an upstream beside its answers: resource updates, list changes, log messages.

// The resource subscriptions that are wanted of an upstream, counted. Survives the link.
mod resources;
// Which subscriptions a handshake upstream is to be asked to begin or to end.
mod requests;
// Has a handshake upstream keep the subscriptions that are wanted of it.
pub(crate) mod handshake;
// Which stream of changes of a stateless upstream tells of which resources.
mod stream_plan;
// Has a stateless upstream tell of all that is wanted, by few streams; a change of wants opens the next before one is let go.
mod stateless;
// The streams of changes that were replaced.
mod fading;
// What the streams of changes tell that were replaced and are heard for a while more: each change is told once.
mod overlap;
// How verbose a handshake upstream has to be: as verbose as anyone wants just now, and no longer than that.
pub(crate) mod log_level;
// How verbose upstreams are to be for sessions, by who would hear it.
mod session_levels;
// Has the live peer keep what is wanted: subscriptions, and for handshake upstreams the log level.
mod keep;
// The part of an instance that holds what is wanted of it.
mod wanted;

pub(crate) use keep::keep;
pub(crate) use requests::Requests;
pub(crate) use resources::WantedSubscriptions;
pub use session_levels::SessionLevels;
pub(crate) use stream_plan::{NextStream, StreamPlan};
pub(crate) use wanted::Wanted;
