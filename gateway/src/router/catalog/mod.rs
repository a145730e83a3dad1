//! What the gateway offers: the merged inventories under their public names, an immutable snapshot that is swapped whole.

// What the gateway offers: the merged inventories, an immutable snapshot that is swapped whole.
pub(crate) mod snapshot;
// Takes stock: turns the inventories into entries with public names and URIs. Pure.
mod build;
// One thing that the gateway offers: what clients call it, whose it is, what that one calls it.
mod entry;
// Everything of one kind that the gateway offers: looked up by public name, listed from encoded bytes.
mod list;
// A list as one kind of caller sees it, encoded once: answering is a copy of bytes.
mod encoded;
// Cursors of our own lists: which list, which version of it, where to go on. Pure.
mod page;
// MCP Apps: the page that a tool names for showing its results. Pure.
pub(crate) mod apps;
// The four kinds of things that are listed.
mod kind;
// The catalog that is in force, and word of each swap.
mod current;
// Keeps the catalog: on each change of an inventory it is built anew and swapped, and listeners are told.
mod rebuild;
// What the clients of one era see, and what a session that has instances of upstreams to itself.
pub(crate) mod views;
// An upstream as the router sees it: who owns names, takes calls and tells what it offers.
mod owner;

pub(crate) use current::Current;
pub(crate) use entry::Entry;
pub(crate) use kind::Kind;
pub use owner::Owner;
pub(crate) use owner::{Member, START_WAIT};
pub(crate) use page::Cursor;
pub(crate) use rebuild::Keeper;
