//! What an upstream offers: read, kept fresh, and kept on disk for the next start.

// What one upstream offers.
mod contents;
// One tool, resource, template or prompt that an upstream offers.
mod item;
// One list of an upstream as it is kept: its items, each with memory of its own, counted for as long as anybody has the list.
mod listing;
// Reads the lists of one upstream: every page, within limits; a list that fails keeps the rest.
mod fetch;
// Keeps the inventory of a live peer: read when it was met, and again when it may have changed.
pub(crate) mod refresh;
// When lists that could not be read are asked for again.
mod again;
// When the inventory is read again.
pub(crate) mod schedule;
// Until when lists may be taken for unchanged, as their upstream said when it was asked.
mod freshness;
// What upstreams offered when they were last read, kept on disk.
mod cache;
// What is offered to clients that declare something else than the gateway does for all.
mod variant;
// The one tool that a principal is offered where it has yet to log in.
mod login_tool;
// The part of an instance that holds what it offers, and what calls need to know of that.
mod offering;

pub(crate) use cache::CachedInventory;
pub use cache::InventoryCache;
pub use contents::{Announced, Inventory};
pub use freshness::Fresh;
pub use item::Item;
pub(crate) use offering::Offering;
pub use variant::Variant;
