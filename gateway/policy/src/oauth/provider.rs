//! Where an authorization server is asked, by whoever has connections.

use std::pin::Pin;

/// An answer that is waited for: its body, or why there is none, in words for the operator.
pub type Asked<'a> = Pin<Box<dyn Future<Output = Result<Vec<u8>, String>> + Send + 'a>>;

/// The connections to one authorization server. Answers are bounded in size and time.
pub trait Provider: Send + Sync {
    /// Its keys, a JSON Web Key Set.
    fn keys(&self) -> Asked<'_>;

    /// What it says of a token (RFC 7662).
    fn introspect<'a>(&'a self, token: &'a str) -> Asked<'a>;
}
