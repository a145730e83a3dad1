//! The end of logins: those that are kept, and what became of each.

pub use crate::upstream::transport::http::credentials::oauth::{LoggedOut, StoredLogins};
