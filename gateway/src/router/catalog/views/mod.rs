//! What some clients see in place of the catalog of all.

// What the clients of one era see: the catalog with what upstreams offer in that era, where that was read.
mod era;
// What a session sees that has instances of upstreams to itself.
mod session;

pub(crate) use era::EraViews;
pub(crate) use session::SessionViews;
