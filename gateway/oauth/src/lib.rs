//! Access tokens for upstreams: from a command, from an authorization server, or after the login of a person (OAuth 2.1).
//!
//! The main items are [`Tokens`] (the current token of an upstream, kept until it expires), [`SharedTokens`] (the same as the
//! [`trunkline_client::transport::http::TokenSource`] of a connection), [`config::Credentials`] (the configured origin of a token) and
//! [`logins`] (logins of persons: made, listed and ended).
//!
//! Invariants:
//!
//! - One task fetches a token for all that wait for it; of several processes with one state folder, one refreshes it.
//! - Tokens and client secrets go to the server that they are for, and appear in no log and no message.
//! - A login is kept before it is used, and removed before its tokens are revoked.

/// Configuration: the origin of a token, and the login of a person.
pub mod config;

// A token as it was given out, or the reason why none was.
mod token;
// How long it lasts, by the words of who gives it out.
mod times;
// What the command of a token says on its stderr, without what may be a token.
mod stderr;
// A token from a command.
mod command;
// Requests to the token endpoint of an authorization server, and its responses.
mod token_request;
// A token from there for a client of its own.
mod endpoint;
// A token for one principal, for which its client's access token is exchanged.
mod exchange;
// A login of a person at an authorization server: made once, kept, and used until it ends.
mod oauth;
// Where a token comes from.
mod source;
// The token that is shown now: kept until it ends, and fetched anew by one for all who wait.
mod tokens;

/// Logins of persons at upstreams: made by a command or a page of the gateway, kept, and ended.
pub mod logins {
    pub use crate::oauth::login::{BegunLogin, Page, Reached, log_in};
    pub use crate::oauth::{IdentityProvider, LoggedIn, LoggedOut, StoredLogins, logged_in};
}

pub use oauth::Show;
pub use tokens::{OfLogin, SharedTokens, Tokens};

pub(crate) use trunkline_call as call;
pub(crate) use trunkline_client::transport;
pub(crate) use trunkline_foundation::{health, metrics, process, runtime, secrets};
