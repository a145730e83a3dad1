//! The narrow waist: every client request becomes one `Call`; whatever comes back is one `Reply`.

// Who makes a call: principal, grants, what it can be asked, its session.
pub mod caller;
// What comes back: events, then one outcome.
pub mod reply;
// Whose share of what all have in common a request takes.
pub mod share;
// One client request, or notification, on its way through the gateway.
#[allow(clippy::module_inception)]
mod call;
// What answers calls: a plain function from `Call` to `Reply`.
mod handler;
// A bounded list of entries that belong to shares.
mod ledger;
// An error of the gateway's own, before an edge puts it into a protocol's words.
pub mod refusal;

pub use call::{Call, ListenFilter, LogLevel};
pub use handler::{Handle, Handler};
pub use ledger::Ledger;
