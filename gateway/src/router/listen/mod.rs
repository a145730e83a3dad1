//! Listen calls: who hears of which change.

// The reply of one listen call: what was taken, then the changes, as long as its caller listens.
mod reply;
// Who listens.
mod registry;
// The rights of a listener: those of its call, or those that its session has by now.
mod rights;
// What a listener sees: of that it is told.
mod sees;
// What one listener has yet to hear.
mod pending;
// How much of what upstreams say is written to our own log: a flood of one must not bury the rest.
mod log_quota;

pub use registry::Listeners;
pub(crate) use reply::listen;
pub(crate) use sees::Sees;
