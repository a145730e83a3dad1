//! The part of an instance that shows how it fares: on the status board, in the metrics, in the log.

use super::condition::Conditions;
use super::reported::ReportedOnce;
use super::siblings::Siblings;
use crate::health::{Cause, CauseCode, StatusHandle};
use crate::metrics;
use crate::runtime::complaints::Complaints;
use crate::upstream::status::notice::Notices;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

/// How one instance fares, as it is shown. Decides nothing: the supervisor does.
pub(crate) struct Status {
    pub(crate) name: Arc<str>,
    /// The number of an instance beside the primary one.
    pub(crate) number: Option<u64>,
    /// Its place on the board.
    pub(crate) handle: StatusHandle,
    /// Of its upstream: all instances count in the same.
    pub(crate) metrics: metrics::Upstream,
    pub(crate) notices: Notices,
    /// The state and cause that were logged last.
    pub(super) reported: ReportedOnce,
    /// What keeps it from being ready while it is up.
    pub(super) conditions: Conditions,
    /// What is probably wrong with it, as its link sees it.
    suspicion: Mutex<Option<String>>,
    /// Which faults were logged last.
    pub(super) complaints: Complaints,
    /// What it shows at its upstream, where it is an instance beside the primary one.
    pub(super) siblings: Arc<Siblings>,
    /// Whether a call has waited in vain for the start that is under way.
    pub(super) is_late: AtomicBool,
}

impl Status {
    /// Of the primary instance.
    pub(crate) fn new(name: &Arc<str>, handle: StatusHandle, notices: Notices) -> Self {
        let siblings = Arc::new(Siblings::new(handle.clone()));
        Self::of(name, None, handle, notices, siblings)
    }

    /// Of an instance beside this one.
    pub(crate) fn beside(&self, number: u64, handle: StatusHandle, notices: Notices) -> Self {
        Self::of(&self.name, Some(number), handle, notices, self.siblings.clone())
    }

    /// Of a session of a client's own, which has no place on the board.
    pub(crate) fn of_session(&self, number: u64, notices: Notices) -> Self {
        let siblings = self.siblings.clone();
        Self {
            name: self.name.clone(),
            number: Some(number),
            handle: self.handle.unshown(),
            metrics: self.metrics.clone(),
            notices,
            reported: ReportedOnce::default(),
            conditions: Conditions::default(),
            suspicion: Mutex::default(),
            complaints: Complaints::default(),
            siblings,
            is_late: AtomicBool::new(false),
        }
    }

    fn of(
        name: &Arc<str>,
        number: Option<u64>,
        handle: StatusHandle,
        notices: Notices,
        siblings: Arc<Siblings>,
    ) -> Self {
        Self {
            name: name.clone(),
            number,
            handle,
            metrics: metrics::upstream(name),
            notices,
            reported: ReportedOnce::default(),
            conditions: Conditions::default(),
            suspicion: Mutex::default(),
            complaints: Complaints::default(),
            siblings,
            is_late: AtomicBool::new(false),
        }
    }

    /// Shows what is probably wrong with a peer that was not met yet, once for each cause.
    pub(crate) fn suspect(&self, cause: &str) {
        let known = self.suspicion.lock().unwrap_or_else(PoisonError::into_inner).replace(cause.to_owned());
        if known.as_deref() == Some(cause) {
            return;
        }
        self.handle.update(|health| health.cause = Some(Cause::new(CauseCode::NotMcp, cause)));
        let cause_code = CauseCode::NotMcp.as_str();
        tracing::warn!(upstream = &*self.name, cause, cause_code, "upstream does not seem to speak MCP");
    }

    /// What is suspected.
    pub(crate) fn suspicion(&self) -> Option<String> {
        self.suspicion.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on it may be suspected anew.
    pub(crate) fn forget_suspicion(&self) {
        *self.suspicion.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
