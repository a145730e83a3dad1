//! The ground: one budget for all that peers make the gateway keep.

// One budget for all that peers make the gateway keep.
pub mod budget;
// One holder in the budget, and how it hears that it loses what it holds.
pub mod account;
// Why something is not kept: the budget is spent.
mod spent;
// Who holds what, and who loses once the budget is spent.
mod ledger;
// What is too small to be counted by itself: summed up by client with an atomic add.
mod small;
// Weighs all that each client makes the gateway keep, and finds what is given up first.
mod clients;
// What stays as long as a session or a subscription does: counted exactly, by client.
mod standing;
// Puts a large message together from its pieces, within the budget.
mod gather;
// Stores the pieces of a large message for the protocol parsers.
mod store;
// Mappings for large messages, of which a few are reused.
mod mapping;
// Has the allocator give memory back to the system: each worker what is free in its heap, after large work.
mod purge;
// How often clients were refused for want of room, by what was full.
mod refusals;
// A message that is written in one go.
mod composed;

pub use composed::{Composed, charged, joined};
pub use gather::Gather;
pub use purge::{keep_purging, purge_when_told};
pub use refusals::Refusals;
pub use standing::StandingCharge;
