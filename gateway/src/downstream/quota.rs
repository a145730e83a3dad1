//! How many calls may wait for an answer of their client at once: in all, and for one principal.

use super::config::Questions;
use crate::call::Principal;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How often it is said that there is no place.
const SAY_EVERY: Duration = Duration::from_secs(60);

/// What an upstream is told whose question finds no place.
pub(super) const FULL: &str = "too many calls wait for an answer already, so nobody was asked (`questions.max_open`, `questions.max_per_principal`)";

/// The calls that wait for an answer, parked or live, counted.
#[derive(Debug)]
pub(super) struct Quota {
    max: usize,
    max_per_principal: usize,
    waiting: Mutex<Waiting>,
    /// When it was last said that there is no place.
    said: Mutex<Option<Instant>>,
}

#[derive(Debug, Default)]
struct Waiting {
    all: usize,
    /// Nobody stands here with none.
    by_principal: HashMap<Principal, usize>,
}

/// One waiting call; it is counted for as long as this lives.
#[derive(Debug)]
pub(super) struct Place {
    quota: Arc<Quota>,
    principal: Principal,
}

impl Quota {
    pub(super) fn new(config: &Questions) -> Arc<Self> {
        let Questions { max_open: max, max_per_principal, .. } = *config;
        Arc::new(Self { max, max_per_principal, waiting: Mutex::default(), said: Mutex::default() })
    }

    /// Counts a call of this principal; `None` where that would be too many.
    pub(super) fn enter(self: &Arc<Self>, principal: &Principal) -> Option<Place> {
        let mut waiting = self.lock();
        let own = waiting.by_principal.get(principal).copied().unwrap_or_default();
        if waiting.all >= self.max || own >= self.max_per_principal {
            drop(waiting);
            self.say();
            return None;
        }
        waiting.all += 1;
        waiting.by_principal.insert(principal.clone(), own + 1);
        Some(Place { quota: self.clone(), principal: principal.clone() })
    }

    /// Says that there is no place, once in a while.
    fn say(&self) {
        let now = Instant::now();
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.is_some_and(|last| now.duration_since(last) < SAY_EVERY) {
            return;
        }
        *said = Some(now);
        drop(said);
        tracing::warn!(max_open = self.max, max_per_principal = self.max_per_principal, "{FULL}");
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut waiting = self.quota.lock();
        waiting.all -= 1;
        if let Some(own) = waiting.by_principal.get_mut(&self.principal) {
            *own -= 1;
            if *own == 0 {
                waiting.by_principal.remove(&self.principal);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_principal_has_its_share_and_all_have_theirs_together() {
        let quota = Quota::new(&Questions { max_open: 3, max_per_principal: 2, ..Questions::default() });
        let [a, b] = ["a", "b"].map(Principal::named);
        let (first, second) = (quota.enter(&a).unwrap(), quota.enter(&a).unwrap());
        assert!(quota.enter(&a).is_none());
        let third = quota.enter(&b).unwrap();
        assert!(quota.enter(&b).is_none());
        drop((first, second));
        assert!(quota.enter(&a).is_some());
        drop(third);
        assert!(quota.lock().by_principal.is_empty() && quota.lock().all == 0);
    }
}
