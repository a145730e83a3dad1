//! A login of a person at an authorization server (OAuth 2.1), for an upstream: made once, kept, and used until it ends.

// What is kept of a login.
mod record;
// The file of a login: sealed, written whole, and changed by one process at a time.
mod store;
// Where the URLs lead that an upstream or an authorization server names, and the documents that are there.
mod way;
// What a 401 says: `WWW-Authenticate`.
mod challenge;
// What an upstream says of itself as a resource: which authorization server it believes, and how it is called there.
mod resource;
// What an authorization server says of itself.
mod server;
// Who the gateway is at an authorization server: configured, or registered there.
mod client;
// Random values of a login: the proof key of its code, and its state.
mod pkce;
// What an authorization server gives for a code or a refresh token.
mod grant;
// Where the browser comes back to: a listener on loopback that takes one answer.
mod callback;
// A login, from the first question to the kept tokens.
pub(crate) mod login;
// The end of a login: kept no more, and revoked.
mod logout;
// The tokens of a login while the gateway runs: read, refreshed ahead of their end by one process, kept.
mod stored_login;

pub use logout::{LoggedOut, StoredLogins};
pub use record::LoggedIn;
pub use server::provider::IdentityProvider;
pub use stored_login::Show;
pub(crate) use stored_login::StoredLogin;
pub use stored_login::logged_in;
