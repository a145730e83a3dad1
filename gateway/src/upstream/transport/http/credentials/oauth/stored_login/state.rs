//! What is known of a login beside what is kept of it.

use crate::health::row::Login as Shown;
use crate::upstream::transport::http::credentials::oauth::record::Record;
use crate::upstream::transport::http::credentials::oauth::store::Stamp;
use tokio::time::Instant;

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
    /// Whether a login that is kept is used.
    pub(super) fn is_used(&self) -> bool {
        !self.is_missing && self.unwritten.is_none() && self.seen.flatten().is_some()
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

/// What is shown of a login.
pub(super) fn shown(record: &Record) -> Shown {
    let ends = record.left().and_then(|left| Instant::now().checked_add(left));
    let (principal, issuer, wanted) = (record.principal.clone(), record.issuer.clone(), record.wanted.clone());
    Shown { principal, issuer, ends, is_refreshed: record.refresh.is_some(), wanted }
}
