//! The types between clients and upstreams: every client request becomes one [`Call`], and every answer is one [`reply::Reply`].
//!
//! Client transports make calls, upstreams answer them, and policies stand between them. None of these needs to know another: they share
//! this crate. Its main items are [`Call`], [`reply::Reply`], [`caller::Caller`] (who makes a call), [`Handle`] (a function from `Call` to
//! `Reply`), [`refusal`] (errors of the gateway itself) and [`share`] (limits per client).
//!
//! Invariants:
//!
//! - [`Handle::handle`] never waits. Waiting happens in the reply.
//! - A reply has any number of events and then one outcome. Dropping it before its outcome cancels the call.
//! - A call carries its own revision, capabilities and identity. The payload stays in the revision of its sender until the exit.
//! - No limit is shared without a bound per client: one client never takes the places of all others.

/// The caller: principal, grants, capabilities and session.
pub mod caller;
/// The answer to a call: events, then one outcome.
pub mod reply;
/// Limits that all clients share, and the part of each client in them.
pub mod share;
// One client request, or notification, on its way through the gateway.
mod call;
// What answers calls: a plain function from `Call` to `Reply`.
mod handler;
// A bounded list of entries that belong to shares.
mod ledger;
/// Errors of the gateway itself, before a transport puts them into the words of a protocol.
pub mod refusal;

pub use call::{Call, ListenFilter, LogLevel};
pub use handler::{Handle, Handler};
pub use ledger::Ledger;

pub(crate) use trunkline_foundation::{memory, metrics, runtime, secrets};
pub(crate) use trunkline_protocol as protocol;
