//! The exchanges in flight on a pipe, found by ids of our own: small, growing, never used twice.

use super::slot::Slot;
use std::sync::Arc;

/// How many exchanges may be in flight on one pipe.
pub(crate) const IN_FLIGHT_MAX: usize = 4096;

/// A table whose cell is the id modulo its size; an id whose cell is taken is skipped, so that a look-up is one step.
#[derive(Debug)]
pub(crate) struct Pending {
    cells: Vec<Option<(u64, Arc<Slot>)>>,
    len: usize,
    next: u64,
    /// How many of them are of clients, as far as log messages may be theirs.
    speakers: usize,
}

impl Default for Pending {
    fn default() -> Self {
        Self { cells: (0..64).map(|_| None).collect(), len: 0, next: 1, speakers: 0 }
    }
}

impl Pending {
    /// Takes an exchange in; `None` when too many are in flight.
    pub(crate) fn insert(&mut self, slot: Arc<Slot>) -> Option<u64> {
        if self.len >= IN_FLIGHT_MAX {
            return None;
        }
        if self.len * 2 >= self.cells.len() {
            self.grow();
        }
        while self.cells[self.cell(self.next)].is_some() {
            self.next += 1;
        }
        let id = self.next;
        self.next += 1;
        self.len += 1;
        self.speakers += usize::from(slot.speaks());
        let cell = self.cell(id);
        self.cells[cell] = Some((id, slot));
        Some(id)
    }

    /// The exchange of an id, while it is in flight.
    pub(crate) fn get(&self, id: u64) -> Option<&Arc<Slot>> {
        self.cells[self.cell(id)].as_ref().filter(|(owner, _)| *owner == id).map(|(_, slot)| slot)
    }

    /// Takes an exchange out.
    pub(crate) fn remove(&mut self, id: u64) -> Option<Arc<Slot>> {
        let cell = self.cell(id);
        let (_, slot) = self.cells[cell].take_if(|(owner, _)| *owner == id)?;
        self.len -= 1;
        self.speakers -= usize::from(slot.speaks());
        Some(slot)
    }

    /// Whether the id was given out before.
    pub(crate) fn was_ours(&self, id: u64) -> bool {
        (1..self.next).contains(&id)
    }

    /// The one exchange in flight that a log message can be of; `None` where there is none, or more than one.
    pub(crate) fn only_speaker(&self) -> Option<&Arc<Slot>> {
        if self.speakers != 1 {
            return None;
        }
        self.cells.iter().flatten().map(|(_, slot)| slot).find(|slot| slot.speaks())
    }

    /// Those during which a client can be asked, oldest first.
    pub(crate) fn calls(&self) -> Vec<Arc<Slot>> {
        let mut found: Vec<_> = self.cells.iter().flatten().filter(|(_, slot)| slot.caller.is_some()).collect();
        found.sort_unstable_by_key(|(id, _)| *id);
        found.into_iter().map(|(_, slot)| slot.clone()).collect()
    }

    /// Takes all out.
    pub(crate) fn drain(&mut self) -> Vec<Arc<Slot>> {
        (self.len, self.speakers) = (0, 0);
        self.cells.iter_mut().filter_map(Option::take).map(|(_, slot)| slot).collect()
    }

    /// How many are in flight.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    fn cell(&self, id: u64) -> usize {
        (id % self.cells.len() as u64) as usize
    }

    fn grow(&mut self) {
        let size = self.cells.len() * 2;
        let old = std::mem::replace(&mut self.cells, (0..size).map(|_| None).collect());
        for (id, slot) in old.into_iter().flatten() {
            // Two ids that differ modulo the old size differ modulo its double.
            let cell = self.cell(id);
            self.cells[cell] = Some((id, slot));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        /// Against a model: a map, and ids that only grow.
        #[test]
        fn it_is_a_map_with_growing_ids(steps in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 1..600)) {
            let mut table = Pending::default();
            let mut model: HashMap<u64, Arc<Slot>> = HashMap::new();
            let mut last = 0;
            for (insert, pick) in steps {
                if insert || model.is_empty() {
                    let slot = Arc::new(Slot::new(false, None));
                    let id = table.insert(slot.clone()).unwrap();
                    prop_assert!(id > last);
                    last = id;
                    model.insert(id, slot);
                } else {
                    let mut ids: Vec<_> = model.keys().copied().collect();
                    ids.sort_unstable();
                    let id = ids[pick.index(ids.len())];
                    prop_assert!(Arc::ptr_eq(&table.remove(id).unwrap(), &model.remove(&id).unwrap()));
                    prop_assert!(table.remove(id).is_none() && table.was_ours(id));
                }
                prop_assert_eq!(table.len(), model.len());
                for (id, slot) in &model {
                    prop_assert!(Arc::ptr_eq(table.get(*id).unwrap(), slot));
                }
            }
        }
    }

    #[test]
    fn it_is_bounded() {
        let mut table = Pending::default();
        let ids: Vec<_> = (0..IN_FLIGHT_MAX).map(|_| table.insert(Arc::new(Slot::new(false, None))).unwrap()).collect();
        assert_eq!(table.insert(Arc::new(Slot::new(false, None))), None);
        table.remove(ids[7]).unwrap();
        assert!(table.insert(Arc::new(Slot::new(false, None))).is_some());
        assert_eq!(table.drain().len(), IN_FLIGHT_MAX);
    }
}
