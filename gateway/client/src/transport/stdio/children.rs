//! The part of an instance that its children share, one after the other: their turn to start, and their share of the log.

use super::start_limit::{StartLimit, StartTicket};
use super::stderr_log::StderrLog;
use crate::call::share::Share;
use ::metrics::Counter;
use std::sync::{Arc, OnceLock};

/// What the children of an upstream share with one another, those of its instances too. Clones share it.
#[derive(Clone)]
pub struct Children {
    /// How much of their stderr is logged.
    pub stderr: StderrLog,
    /// Whose turn it is to start a child; the upstream's own, where it shares starts with no other.
    starts: OnceLock<StartLimit>,
}

impl Children {
    /// Of one upstream; the lines on stderr are counted here.
    pub fn new(upstream: &Arc<str>, lines: Counter) -> Self {
        Self { stderr: StderrLog::new(upstream, lines), starts: OnceLock::new() }
    }

    /// They start in turn with those of other upstreams.
    pub fn share_starts(&self, starts: &StartLimit) {
        let _is_first = self.starts.set(starts.clone());
    }

    /// A place among those who start children, for whoever has this share.
    pub fn ticket(&self, share: Option<Share>) -> StartTicket {
        self.starts.get_or_init(StartLimit::of_this_machine).ticket(share)
    }
}
