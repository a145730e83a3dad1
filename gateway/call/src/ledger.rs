//! A bounded list of entries that belong to shares. Too many of one share never take the entries of another.

use super::share::{Share, Tally};
use std::collections::VecDeque;

/// Entries, oldest first. A full list forgets the oldest entry of the share that has most.
#[derive(Debug)]
pub struct Ledger<T> {
    max: usize,
    entries: VecDeque<(Share, T)>,
    by: Tally,
}

impl<T> Ledger<T> {
    /// A list of at most so many entries.
    pub fn new(max: usize) -> Self {
        Self { max, entries: VecDeque::new(), by: Tally::default() }
    }

    /// Adds an entry. A full list forgets one: the oldest of the share that has most, or of this share where none has more.
    pub fn push(&mut self, share: &Share, entry: T) {
        if self.entries.len() >= self.max {
            let most = self.by.most();
            let is_own = self.by.of(share) == most;
            let is_next = |(of, _): &(Share, T)| if is_own { of == share } else { self.by.of(of) == most };
            self.remove(self.entries.iter().position(is_next).unwrap_or(0));
        }
        self.by.add(share);
        self.entries.push_back((share.clone(), entry));
    }

    /// The entries, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> + ExactSizeIterator {
        self.entries.iter().map(|(_, entry)| entry)
    }

    /// The entries, to change them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut().map(|(_, entry)| entry)
    }

    /// Takes an entry out by its place.
    pub fn remove(&mut self, at: usize) -> Option<T> {
        let (share, entry) = self.entries.remove(at)?;
        self.by.remove(&share);
        Some(entry)
    }

    /// Keeps these entries alone.
    pub fn retain(&mut self, is_kept: impl Fn(&T) -> bool) {
        let by = &mut self.by;
        self.entries.retain(|(share, entry)| {
            let is_kept = is_kept(entry);
            if !is_kept {
                by.remove(share);
            }
            is_kept
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::Principal;

    #[test]
    fn whoever_adds_most_forgets_its_own_and_nobody_elses() {
        let mut ledger = Ledger::new(8);
        let [one, other, late] = ["one", "other", "late"].map(|name| Share::Principal(Principal::named(name)));
        ledger.push(&other, 1000);
        ledger.push(&other, 1001);
        (0..100).for_each(|number| ledger.push(&one, number));
        assert_eq!(ledger.iter().copied().collect::<Vec<_>>(), [1000, 1001, 94, 95, 96, 97, 98, 99]);
        ledger.push(&late, 2000);
        assert_eq!(ledger.iter().copied().collect::<Vec<_>>(), [1000, 1001, 95, 96, 97, 98, 99, 2000]);
        ledger.retain(|entry| *entry >= 1000);
        assert_eq!((ledger.by.of(&one), ledger.by.of(&other), ledger.iter().len()), (0, 2, 3));
        assert_eq!(ledger.remove(0), Some(1000));
        let mut full = Ledger::new(2);
        [&one, &other, &late].into_iter().for_each(|share| full.push(share, 0));
        assert_eq!((full.iter().len(), full.by.of(&one), full.by.of(&late)), (2, 0, 1));
    }
}
