//! Logs in on behalf of a person.

use std::pin::Pin;

/// Something under way that comes to this, or to why not, in words for the person.
pub type Doing<T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send>>;

/// Logs in to upstreams on behalf of a person.
pub trait Logins: Send + Sync + 'static {
    /// Whether a person can log in to an upstream by a page.
    fn admits(&self, upstream: &str) -> bool;

    /// Begins a login whose browser is sent back to an address.
    fn begin(&self, upstream: &str, redirect: &str) -> Doing<Begun>;
}

/// A login that waits for what the browser brings back.
pub struct Begun {
    /// Where the person goes on.
    pub url: String,
    /// What the browser brings back from there.
    pub state: String,
    /// The authorization server.
    pub issuer: String,
    /// The origin of its page, where that is another one.
    pub elsewhere: Option<String>,
    /// What it is asked for; empty where that is whatever is usual there.
    pub scopes: Vec<String>,
    /// Goes on with the query that the browser brings: whether the upstream is connected with the login that is kept then.
    pub finish: Box<dyn FnOnce(String) -> Doing<bool> + Send>,
}
