//! What is known of a login beside what is kept of it.

use crate::config::Login;
use crate::health::row::Login as Shown;
use crate::oauth::record::Record;
use crate::oauth::resource::is_same;
use crate::oauth::store::Stamp;
use tokio::time::Instant;

/// Shows a login, or that there is none.
pub type Show = Box<dyn Fn(Option<Shown>) + Send + Sync>;

/// What is known of a login in this process.
#[derive(Default)]
pub(super) struct State {
    /// Whether a person had to log in when a token was wanted last.
    pub(super) is_missing: bool,
    /// The access token that the upstream takes for nothing any more.
    pub(super) dead: Option<String>,
    /// What the upstream wants to be allowed beyond what there is.
    pub(super) wanted: Vec<String>,
    /// What could not be written: the file holds what is good no more.
    pub(super) unwritten: Option<Record>,
    /// How the file was when it was read or written last.
    pub(super) seen: Option<Stamp>,
}

impl State {
    /// How the file of the login is that is used, where one is.
    pub(super) fn used(&self) -> Option<Stamp> {
        self.seen.filter(|seen| seen.is_some() && !self.is_missing && self.unwritten.is_none())
    }

    /// What is kept, or was to be: what was given last.
    pub(super) fn latest(&mut self, kept: Option<Record>) -> Option<Record> {
        match (kept, &self.unwritten) {
            (Some(kept), Some(unwritten)) if unwritten.given >= kept.given => Some(unwritten.clone()),
            (kept, _) => {
                self.unwritten = None;
                kept
            }
        }
    }
}

/// What to do where a request is forbidden, and nothing says what would let it be.
pub(super) fn forbidden(login: &Login) -> String {
    format!("check what the person who logged in may do there, or run `{}`", login.command())
}

/// Why a login that is kept cannot be used as this one, if so. A file that was brought there from elsewhere says nothing of this one.
pub(super) fn unfit(record: &Record, login: &Login) -> Option<&'static str> {
    if (&*record.upstream, &*record.resource) != (&*login.upstream, &*login.resource) {
        return Some(": the login that is kept is that of another upstream");
    }
    if record.principal.as_deref() != login.principal.as_deref() {
        return Some(": the login that is kept is that of another principal");
    }
    if login.issuer.as_ref().is_some_and(|issuer| !is_same(issuer, &record.issuer)) {
        return Some(": the last login was at another authorization server than `issuer`");
    }
    let is_of_another = login.client.as_ref().is_some_and(|client| client.id != record.client_id);
    is_of_another.then_some(": the last login was that of another client than `client_id`")
}

/// What is shown of a login.
pub(super) fn shown(record: &Record) -> Shown {
    let ends = record.left().and_then(|left| Instant::now().checked_add(left));
    let (principal, issuer, wanted) = (record.principal.clone(), record.issuer.clone(), record.wanted.clone());
    Shown { principal, issuer, ends, is_refreshed: record.refresh.is_some(), wanted }
}
