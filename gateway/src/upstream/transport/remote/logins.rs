//! Logins beyond the command that makes them: those that are begun by a page of the gateway, and the end of those that are kept.

pub use crate::upstream::transport::http::credentials::oauth::login::{BegunLogin, Reached};
pub use crate::upstream::transport::http::credentials::oauth::{LoggedOut, StoredLogins};
