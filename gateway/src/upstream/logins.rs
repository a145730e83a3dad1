//! Logins of persons at upstreams: made by a command or a page of the gateway, kept, and ended.

pub use crate::upstream::credentials::oauth::login::{BegunLogin, Page, Reached, log_in};
pub use crate::upstream::credentials::oauth::{IdentityProvider, LoggedIn, LoggedOut, StoredLogins, logged_in};
