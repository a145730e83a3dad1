//! What can ail an upstream that is there, and what does.

use std::sync::{Arc, Mutex, PoisonError};

/// What can ail an upstream that is there. The first of them is the one that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ail {
    /// It does not answer when it is asked whether it is there.
    Silent,
    /// It fails again and again, and is left alone for a while.
    Failing,
    /// It asked to be left alone for a while.
    Resting,
    /// It refuses the credentials that it is called with.
    Denied,
}

/// What ails one upstream, each with its reason.
#[derive(Default)]
pub(crate) struct Ails(Mutex<[Option<Arc<str>>; 4]>);

impl Ails {
    /// Sets or takes back one of them; what is to be shown then.
    pub(crate) fn set(&self, ail: Ail, cause: Option<&str>) -> Option<Arc<str>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all[ail as usize] = cause.map(Arc::from);
        all.iter().flatten().next().cloned()
    }

    /// What is to be shown.
    pub(crate) fn first(&self) -> Option<Arc<str>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().flatten().next().cloned()
    }
}
