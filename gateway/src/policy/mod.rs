//! What requests must pass before they are read, as tower layers.

// Who calls: a bearer token compared in constant time, before anything of the request is read.
pub mod authenticate;
// Who calls over TLS: the subject of a client's certificate, else the bearer of a token.
pub mod certified;
// Access tokens of authorization servers.
pub mod oauth;
// Pages where a person logs in to an upstream that a call needs a login for.
pub mod connect;
// How much one client may have: calls in a time, calls at once, bytes.
pub mod limits;
// Secrets in texts, taken out where that is configured.
pub mod redact;
// What each principal may see, kept up to date.
mod rights;
// Who may call: checked values, made from the files by `config`.
pub mod config;

pub use rights::Changed;
