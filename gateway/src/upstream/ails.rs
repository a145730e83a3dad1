//! What can ail an upstream that is there, and what does.

use std::sync::{Arc, Mutex, PoisonError};

/// What can ail an upstream that is there; the gravest first.
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
    /// What it offers could not be read.
    Unlisted,
}

/// What ails one upstream, each with its reason.
#[derive(Default)]
pub(crate) struct Ails(Mutex<[Option<Arc<str>>; 5]>);

impl Ails {
    /// Sets or takes back one of them; what is to be shown then.
    pub(crate) fn set(&self, ail: Ail, cause: Option<&str>) -> Option<String> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all[ail as usize] = cause.map(Arc::from);
        shown(&*all)
    }

    /// What is to be shown.
    pub(crate) fn shown(&self) -> Option<String> {
        shown(&*self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// All of them: one may hide what another means for calls.
fn shown(all: &[Option<Arc<str>>]) -> Option<String> {
    let all: Vec<&str> = all.iter().flatten().map(|cause| &**cause).collect();
    (!all.is_empty()).then(|| all.join("; "))
}
