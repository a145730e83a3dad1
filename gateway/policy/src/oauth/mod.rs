//! Access tokens of clients: those that authorization servers give out, judged by their keys or by asking (OAuth 2.1, RFC 9068, 7662, 9728).

// Signatures, by `ring`.
mod signatures;
// The keys of an authorization server: bounded, each with the tokens that it has signed.
mod keys;
// What a token claims, and what is read of it.
mod claims;
// A JSON Web Token: what is read before its key is known, and how it is judged with it.
mod token;
// Why a token is not taken.
mod refused;
// Where an authorization server is asked, by whoever has connections.
mod provider;
// One authorization server: its keys, fetched by one for all, and how often.
mod issuer;
// Questions about tokens: one at a time for each.
mod questions;
// All of them, and the tokens that were judged.
mod issuers;

pub use issuers::Issuers;
pub(super) use issuers::{Judging, Look};
pub use provider::{Asked, Provider};
pub(super) use refused::Refused;
