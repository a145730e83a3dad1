//! The exchanges in flight on a pipe, found by ids of our own: small, growing, never used twice.

use crate::call::share::{Tally, may_have};
use crate::transport::exchange::mailbox::Mailbox;
use std::collections::VecDeque;
use std::sync::Arc;

/// How many exchanges may be in flight on one pipe; one client gets half of them.
pub(crate) const IN_FLIGHT_MAX: usize = 8192;

/// So many that were given up are remembered.
const GIVEN_UP_MAX: usize = 1024;

/// A table whose cell is the id modulo its size; an id whose cell is taken is skipped, so that a look-up is one step.
#[derive(Debug)]
pub(crate) struct Pending {
    cells: Vec<Option<(u64, Arc<Mailbox>)>>,
    len: usize,
    next: u64,
    /// How many of them are of clients, as far as log messages may be theirs.
    speakers: usize,
    /// How many are of each client.
    by: Tally,
    /// The last ones that were given up before their answer came.
    given_up: VecDeque<u64>,
    /// Of older ones than this it is not known any more.
    forgotten: u64,
}

impl Default for Pending {
    fn default() -> Self {
        Self {
            cells: (0..64).map(|_| None).collect(),
            len: 0,
            next: 1,
            speakers: 0,
            by: Tally::default(),
            given_up: VecDeque::new(),
            forgotten: 0,
        }
    }
}

impl Pending {
    /// Takes an exchange in; `None` when too many are in flight.
    pub(crate) fn insert(&mut self, slot: Arc<Mailbox>) -> Option<u64> {
        let free = IN_FLIGHT_MAX - self.len;
        let has_room = match &slot.share {
            Some(share) => self.by.add_where(share, |own| may_have(own, free)),
            None => may_have(0, free),
        };
        if !has_room {
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
    pub(crate) fn get(&self, id: u64) -> Option<&Arc<Mailbox>> {
        self.cells[self.cell(id)].as_ref().filter(|(owner, _)| *owner == id).map(|(_, slot)| slot)
    }

    /// The id of an exchange that is in flight.
    pub(crate) fn id_of(&self, slot: &Arc<Mailbox>) -> Option<u64> {
        self.cells.iter().flatten().find(|(_, other)| Arc::ptr_eq(slot, other)).map(|(id, _)| *id)
    }

    /// Takes an exchange out.
    pub(crate) fn remove(&mut self, id: u64) -> Option<Arc<Mailbox>> {
        let cell = self.cell(id);
        let (_, slot) = self.cells[cell].take_if(|(owner, _)| *owner == id)?;
        self.len -= 1;
        self.speakers -= usize::from(slot.speaks());
        slot.share.iter().for_each(|share| self.by.remove(share));
        Some(slot)
    }

    /// Takes an exchange out whose answer has not come: what comes for it yet has crossed the word that it is not wanted.
    pub(crate) fn give_up(&mut self, id: u64) -> Option<Arc<Mailbox>> {
        let slot = self.remove(id)?;
        if self.given_up.len() >= GIVEN_UP_MAX {
            self.forgotten = self.given_up.pop_front().map_or(self.forgotten, |oldest| self.forgotten.max(oldest + 1));
        }
        self.given_up.push_back(id);
        Some(slot)
    }

    /// Whether the id was given out before.
    pub(crate) fn was_ours(&self, id: u64) -> bool {
        (1..self.next).contains(&id)
    }

    /// Whether the id is of an exchange that was given up, as far as that is known.
    pub(crate) fn was_given_up(&self, id: u64) -> bool {
        self.was_ours(id) && (id < self.forgotten || self.given_up.contains(&id))
    }

    /// The one exchange in flight that a log message can be of; `None` where there is none, or more than one.
    pub(crate) fn only_speaker(&self) -> Option<&Arc<Mailbox>> {
        if self.speakers != 1 {
            return None;
        }
        self.cells.iter().flatten().map(|(_, slot)| slot).find(|slot| slot.speaks())
    }

    /// Those during which a client can be asked, oldest first.
    pub(crate) fn calls(&self) -> Vec<Arc<Mailbox>> {
        let mut found: Vec<_> = self.cells.iter().flatten().filter(|(_, slot)| slot.caller.is_some()).collect();
        found.sort_unstable_by_key(|(id, _)| *id);
        found.into_iter().map(|(_, slot)| slot.clone()).collect()
    }

    /// Takes all out, and gives them up.
    pub(crate) fn drain(&mut self) -> Vec<Arc<Mailbox>> {
        (self.len, self.speakers, self.forgotten) = (0, 0, self.next);
        self.by.clear();
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
    use crate::call::caller::Principal;
    use crate::call::share::Share;
    use crate::protocol::frame::Method;
    use crate::protocol::value::Object;
    use crate::transport::exchange::Request;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        /// Against a model: a map, and ids that only grow.
        #[test]
        fn it_is_a_map_with_growing_ids(steps in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 1..600)) {
            let mut table = Pending::default();
            let mut model: HashMap<u64, Arc<Mailbox>> = HashMap::new();
            let mut last = 0;
            for (insert, pick) in steps {
                if insert || model.is_empty() {
                    let slot = Arc::new(Mailbox::new(false, None));
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
        let ids: Vec<_> =
            (0..IN_FLIGHT_MAX).map(|_| table.insert(Arc::new(Mailbox::new(false, None))).unwrap()).collect();
        assert_eq!(table.insert(Arc::new(Mailbox::new(false, None))), None);
        table.remove(ids[7]).unwrap();
        assert!(table.insert(Arc::new(Mailbox::new(false, None))).is_some());
        assert_eq!(table.drain().len(), IN_FLIGHT_MAX);
    }

    #[test]
    fn one_client_leaves_room_for_another() {
        let mut table = Pending::default();
        let share = |name: &str| Share::Principal(Principal::named(name));
        let mut flood = |name: &str| {
            let nothing = Object::empty();
            let request = Request { share: Some(share(name)), ..Request::new(&Method::ToolsCall, &nothing, None) };
            let slot = || Arc::new(Mailbox::of(&request));
            let ids: Vec<_> = std::iter::from_fn(|| table.insert(slot())).collect();
            (ids.len(), ids[0])
        };
        assert_eq!(flood("a").0, IN_FLIGHT_MAX / 2);
        let (count, first) = flood("b");
        assert_eq!(count, IN_FLIGHT_MAX / 4);
        table.remove(first).unwrap();
        assert_eq!(["a", "b"].map(|name| table.by.of(&share(name))), [IN_FLIGHT_MAX / 2, IN_FLIGHT_MAX / 4 - 1]);
        table.drain();
        assert!(table.by.is_empty());
    }

    #[test]
    fn what_was_given_up_is_told_from_what_was_answered() {
        let mut table = Pending::default();
        let next = |table: &mut Pending| table.insert(Arc::new(Mailbox::new(false, None))).unwrap();
        let (answered, given_up, open) = (next(&mut table), next(&mut table), next(&mut table));
        assert!(table.remove(answered).is_some() && table.give_up(given_up).is_some());
        let of = |table: &Pending| [answered, given_up, open, 9999].map(|id| table.was_given_up(id));
        assert_eq!(of(&table), [false, true, false, false]);
        // Only so many are remembered; of older ones than those nothing is claimed.
        for _ in 0..GIVEN_UP_MAX {
            let id = next(&mut table);
            table.give_up(id);
        }
        assert_eq!(of(&table), [true, true, false, false]);
        table.drain();
        assert!(table.was_given_up(open));
    }
}
