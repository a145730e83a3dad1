//! What some clients see in place of the catalog of all.

// What the clients of one era see: the catalog with what upstreams offer in that era, where that was read.
mod era;
// What the clients see that declare the same: the view of their era with the lists that upstreams give to those who declare it.
mod declared;
// What a principal sees that has logins of its own.
mod personal;
// Whether anybody has a use for a view.
mod usage;
// What a session sees that has instances of upstreams to itself.
mod session;

pub(crate) use declared::{DeclaredView, DeclaredViews};
pub(crate) use era::EraViews;
pub(crate) use personal::{PersonalView, PersonalViews};
pub(crate) use session::{SessionView, SessionViews};
