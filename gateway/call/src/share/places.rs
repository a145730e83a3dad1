//! A bounded number of places, of which nobody takes so many that others find none.

use super::key::Share;
use super::tally::Tally;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many of the places one share may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// No more than are still free: one alone has half of them, and there is always room for one more.
    OfFree,
    /// So many, as long as there are any.
    AtMost(usize),
}

/// Places of a bounded number, counted by share.
#[derive(Debug)]
pub struct Shares {
    most: usize,
    part: Part,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    all: usize,
    by: Tally,
}

/// One place; dropped, it is free.
#[derive(Debug)]
pub struct SharePermit {
    of: Arc<Shares>,
    share: Share,
}

impl Shares {
    /// So many places.
    pub fn new(most: usize, part: Part) -> Arc<Self> {
        Arc::new(Self { most, part, held: Mutex::default() })
    }

    /// A place; `None` where the share has its part.
    pub fn take(self: &Arc<Self>, share: &Share) -> Option<SharePermit> {
        let mut held = self.lock();
        let free = self.most.saturating_sub(held.all);
        if !held.by.add_where(share, |own| self.part.allows(own, free)) {
            return None;
        }
        held.all += 1;
        Some(SharePermit { of: self.clone(), share: share.clone() })
    }

    /// How many are held.
    pub fn held(&self) -> usize {
        self.lock().all
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Part {
    /// Whether one that holds `own` may have another where so many are free.
    fn allows(self, own: usize, free: usize) -> bool {
        match self {
            Self::OfFree => may_have(own, free),
            Self::AtMost(most) => free > 0 && own < most,
        }
    }
}

/// Whether one that holds `own` may have another where so many are free, of which it gets its part.
pub fn may_have(own: usize, free: usize) -> bool {
    own < free
}

impl Drop for SharePermit {
    fn drop(&mut self) {
        let mut held = self.of.lock();
        held.all -= 1;
        held.by.remove(&self.share);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::Principal;

    fn share(name: &str) -> Share {
        Share::Principal(Principal::named(name))
    }

    #[test]
    fn one_alone_gets_half_and_whoever_comes_finds_room() {
        let shares = Shares::new(512, Part::OfFree);
        let all = |name: &str| {
            let share = share(name);
            std::iter::from_fn(|| shares.take(&share)).collect::<Vec<_>>()
        };
        let held: Vec<_> = ["a", "b", "c", "d", "e", "f", "g", "h", "i"].map(all).into_iter().collect();
        assert_eq!(held.iter().map(Vec::len).collect::<Vec<_>>(), [256, 128, 64, 32, 16, 8, 4, 2, 1]);
        drop(held);
        assert!(shares.held() == 0 && shares.lock().by.is_empty());
    }

    #[test]
    fn a_client_has_its_share_and_all_have_theirs_together() {
        let shares = Shares::new(3, Part::AtMost(2));
        let [a, b] = ["a", "b"].map(share);
        let (first, second) = (shares.take(&a).unwrap(), shares.take(&a).unwrap());
        assert!(shares.take(&a).is_none());
        let third = shares.take(&b).unwrap();
        assert!(shares.take(&b).is_none());
        drop((first, second));
        assert!(shares.take(&a).is_some());
        drop(third);
        assert!(shares.held() == 0 && shares.lock().by.is_empty());
    }
}
