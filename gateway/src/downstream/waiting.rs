//! How many calls may wait for answers of their clients, parked or live: in all, and of one principal.

use crate::call::Principal;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts the calls that wait for answers.
#[derive(Debug)]
pub(super) struct Waiting {
    max_open: usize,
    max_per_principal: usize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    all: usize,
    of: HashMap<Principal, usize>,
}

/// One call's place among those that wait; it is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    waiting: Arc<Waiting>,
    principal: Principal,
}

impl Waiting {
    pub(super) fn new(max_open: usize, max_per_principal: usize) -> Self {
        Self { max_open, max_per_principal, open: Mutex::default() }
    }

    /// Takes a place for a call of this principal; `None` where there is none left: its question is then refused.
    pub(super) fn enter(self: &Arc<Self>, principal: &Principal) -> Option<Seat> {
        let mut open = self.lock();
        let own = open.of.get(principal).copied().unwrap_or_default();
        if open.all >= self.max_open || own >= self.max_per_principal {
            return None;
        }
        open.all += 1;
        open.of.insert(principal.clone(), own + 1);
        Some(Seat { waiting: self.clone(), principal: principal.clone() })
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut open = self.waiting.lock();
        open.all -= 1;
        let own = open.of.get(&self.principal).copied().unwrap_or_default();
        match own {
            0 | 1 => drop(open.of.remove(&self.principal)),
            own => drop(open.of.insert(self.principal.clone(), own - 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_bounded_in_all_and_for_one_and_come_back() {
        let waiting = Arc::new(Waiting::new(3, 2));
        let [a, b, c] = ["a", "b", "c"].map(Principal::named);
        let mut seats: Vec<_> = [&a, &a, &b].into_iter().map(|who| waiting.enter(who).unwrap()).collect();
        assert!(waiting.enter(&c).is_none() && waiting.enter(&a).is_none());
        seats.pop();
        assert!(waiting.enter(&a).is_none());
        seats.push(waiting.enter(&c).unwrap());
        seats.clear();
        assert!(waiting.lock().of.is_empty() && waiting.lock().all == 0);
    }
}
