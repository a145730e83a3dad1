//! What is shown to the clients of one era that declare the same.

use super::missing::Said;
use crate::memory::StandingCharge;
use crate::protocol::capabilities::beyond::Declared;
use crate::protocol::revision::Era;
use crate::upstream::instance::Instance;
use crate::upstream::instance::inventory::Variant;
use arc_swap::ArcSwapOption;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// Lists that are everyone's are compared with those again, where somebody looks at them, after so long.
const STALE: Duration = Duration::from_secs(30);

/// The lists for the clients of one era that declare the same.
pub(super) struct Kept {
    pub(super) era: Era,
    pub(super) set: Declared,
    pub(super) shown: watch::Sender<Variant>,
    /// What stands for the upstream where they are read.
    pub(super) side: ArcSwapOption<Instance>,
    /// When they were looked at last where they are everyone's, and word that they are to be again.
    pub(super) seen: Mutex<Option<Instant>>,
    pub(super) look: Notify,
    /// Which tools their clients lack.
    pub(super) missing: Said,
    _counted: StandingCharge,
}

impl Kept {
    pub(super) fn new(
        (era, set): (Era, Declared),
        shown: watch::Sender<Variant>,
        missing: Said,
        counted: StandingCharge,
    ) -> Self {
        let (side, seen, look) = (ArcSwapOption::empty(), Mutex::default(), Notify::new());
        Self { era, set, shown, side, seen, look, missing, _counted: counted }
    }

    /// Somebody looks at them: they are read again where that was last done long ago.
    pub(super) fn refresh(&self) {
        if let Some(side) = &*self.side.load() {
            return side.offering.reads.refresh();
        }
        let mut seen = self.seen();
        if seen.is_some_and(|at| at.elapsed() >= STALE) {
            *seen = None;
            self.look.notify_one();
        }
    }

    pub(super) fn seen(&self) -> MutexGuard<'_, Option<Instant>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_of(&self, era: Era, set: &Declared) -> bool {
        self.era == era && self.set == *set
    }

    /// From now on its clients see this.
    pub(super) fn show(&self, now: Variant) {
        self.shown.send_if_modified(|before| {
            let is_same = match (&*before, &now) {
                (Variant::Shared, Variant::Shared) => true,
                (Variant::Own(before), Variant::Own(now)) => Arc::ptr_eq(before, now),
                _ => false,
            };
            if !is_same {
                *before = now;
            }
            !is_same
        });
    }

    /// What is shown is not waited for any more.
    pub(super) fn is_settled(&self) {
        if matches!(*self.shown.borrow(), Variant::Coming) {
            self.show(Variant::Shared);
        }
    }

    /// Whether they are everyone's.
    pub(super) fn is_shared(&self) -> bool {
        matches!(*self.shown.borrow(), Variant::Shared)
    }
}
