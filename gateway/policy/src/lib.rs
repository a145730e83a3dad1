//! Policies of requests, as tower layers and as layers of the chain: authentication, roles, limits and redaction.
//!
//! The main items are [`authenticate::AuthenticateLayer`] (tokens), [`certified`] (client certificates), [`oauth`] (access tokens of
//! authorization servers), [`connect::Connect`] (pages where a person logs in to an upstream), [`limits::Limits`] (calls and bytes per
//! client) and [`redact::Redact`] (secrets in texts).
//!
//! Invariants:
//!
//! - A request is authenticated before its body is read.
//! - Static tokens are compared in constant time.
//! - A token of a client never leaves this crate: calls carry a principal and its grants.

/// Authentication by bearer token, before anything else of a request is read.
pub mod authenticate;
/// Authentication over TLS: the subject of a client certificate, else the bearer token.
pub mod certified;
/// Pages where a person logs in to an upstream, for a call that needs it.
pub mod connect;
/// Limits per client: calls per time, concurrent calls, bytes.
pub mod limits;
/// Access tokens of authorization servers.
pub mod oauth;
/// Redaction of secrets in texts, where configured.
pub mod redact;
// What each principal may see, kept up to date.
/// Configuration of policies: checked values that `config` makes from the files.
pub mod config;
mod rights;

pub use rights::Changed;

pub(crate) use trunkline_call as call;
pub(crate) use trunkline_foundation::{metrics, runtime, secrets};
pub(crate) use trunkline_protocol as protocol;
