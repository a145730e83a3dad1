//! Logs in on behalf of a person.

use crate::call::caller::Principal;
use std::pin::Pin;

/// Something under way that comes to this, or to why not, in words for the person.
pub type Doing<T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send>>;

/// Over when a page has ended before its login was made.
pub type Ended = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What is done with what a browser brings.
pub type Finish = Box<dyn FnOnce(String, Ended) -> Doing<bool> + Send>;

/// Logs in to upstreams on behalf of a person.
pub trait Logins: Send + Sync + 'static {
    /// What the person behind a principal can log in to at an upstream; `None` where nobody can.
    fn entry(&self, upstream: &str, principal: &Principal) -> Option<Entry>;

    /// Begins a login for a principal.
    fn begin(&self, upstream: &str, principal: &Principal, client: Registrant) -> Doing<Begun>;
}

/// Who the gateway is at an authorization server.
pub struct Registrant {
    /// Where browsers are sent back to.
    pub redirect: String,
    /// Where it says itself who it is, for those who read that in place of a registration; only over TLS.
    pub document: Option<String>,
}

/// A login that can be made.
pub struct Entry {
    /// Whether it is that of the principal alone. Else all who call have it in common.
    pub is_own: bool,
    /// What is run for it where no page is.
    pub command: String,
    /// What is logged in to, and as which client: a login that was begun for another place is not finished.
    pub place: String,
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
    /// The principal whose login it becomes, where it is not that of all.
    pub whose: Option<String>,
    /// Goes on with the query that the browser brings: whether the upstream is connected with the login that is kept then. None is kept
    /// once the page has ended.
    pub finish: Finish,
}
