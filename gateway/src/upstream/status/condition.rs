//! The conditions of an instance that hold now.

use crate::health::Cause;
use crate::transport::condition::Condition;
use std::sync::{Mutex, PoisonError};

/// The conditions of one instance that hold now, each with its reason.
#[derive(Default)]
pub(crate) struct Conditions(Mutex<[Option<Cause>; 6]>);

impl Conditions {
    /// Sets or takes back one of them, and shows what there is then. Changes are shown in the order in which they are made, so that the
    /// last one that is shown is true.
    pub(crate) fn set(&self, condition: Condition, cause: Option<&Cause>, show: impl FnOnce(Option<&Cause>)) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all[condition as usize] = cause.cloned();
        show(shown(&*all).as_ref());
    }

    /// Another life begins: what its link showed was the last one's.
    pub(crate) fn renew(&self) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (all[Condition::Silent as usize], all[Condition::Unread as usize]) = (None, None);
    }

    /// Shows what there is; no change is shown meanwhile.
    pub(crate) fn tell(&self, show: impl FnOnce(Option<&Cause>)) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        show(shown(&*all).as_ref());
    }
}

/// All of them: one may hide what another means for calls.
fn shown(all: &[Option<Cause>]) -> Option<Cause> {
    let all = all.iter().flatten().cloned();
    all.reduce(|before, next| before.own("; ").then(&next))
}
