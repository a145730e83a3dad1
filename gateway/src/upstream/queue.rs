//! The calls that wait for one upstream: bounded, those of one caller in their order, the callers by turns.

use super::places::Place;
use super::turn::{For, Waiting};
use crate::call::{Call, Principal};
use std::collections::VecDeque;
use std::sync::Arc;

/// A call that waits.
pub(crate) struct Entry {
    pub(crate) call: Call,
    pub(crate) turn: Waiting,
    /// The place that it has already.
    pub(crate) place: Option<Place>,
}

/// What became of a call that was to wait. Of too many the newest of whoever has most waiting is refused.
pub(crate) enum Pushed {
    /// It waits.
    In,
    /// It waits, and this one makes room for it.
    InsteadOf(Entry),
    /// It is refused itself.
    Refused(Entry),
}

/// The calls that wait, each caller's in a lane of its own.
#[derive(Default)]
pub(crate) struct Queue {
    lanes: VecDeque<Lane>,
    len: usize,
}

struct Lane {
    whose: Whose,
    entries: VecDeque<Entry>,
}

/// Whom a call is of: a session where it has one, else its principal.
#[derive(PartialEq)]
enum Whose {
    Session(Arc<str>),
    Principal(Principal),
}

impl Queue {
    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Puts a call behind those of its caller; no more than `most` wait.
    pub(crate) fn push(&mut self, entry: Entry, most: usize) -> Pushed {
        if self.len >= most {
            self.prune();
        }
        let whose = Whose::of(&entry.call);
        let own = self.lanes.iter().position(|lane| lane.whose == whose);
        let mut pushed = Pushed::In;
        if self.len >= most {
            let own_len = own.map_or(0, |at| self.lanes[at].entries.len());
            let longest = self.lanes.iter_mut().max_by_key(|lane| lane.entries.len());
            // It must be better off than whoever makes room for it.
            match longest.filter(|lane| lane.entries.len() > own_len + 1).and_then(|lane| lane.entries.pop_back()) {
                None => return Pushed::Refused(entry),
                Some(newest) => pushed = Pushed::InsteadOf(newest),
            }
        } else {
            self.len += 1;
        }
        match own {
            Some(at) => self.lanes[at].entries.push_back(entry),
            None => self.lanes.push_back(Lane { whose, entries: VecDeque::from([entry]) }),
        }
        pushed
    }

    /// The call whose turn it is.
    pub(crate) fn first(&mut self) -> Option<&Entry> {
        while self.lanes.front()?.entries.front().is_none_or(|entry| entry.turn.is_closed()) {
            self.pop();
        }
        self.lanes.front()?.entries.front()
    }

    /// Takes the call out whose turn it is; the next one is another caller's.
    pub(crate) fn pop(&mut self) -> Option<Entry> {
        let mut lane = self.lanes.pop_front()?;
        let entry = lane.entries.pop_front();
        self.len -= usize::from(entry.is_some());
        if !lane.entries.is_empty() {
            self.lanes.push_back(lane);
        }
        entry
    }

    /// Forgets those that are no longer waited for.
    pub(crate) fn prune(&mut self) {
        self.lanes.iter_mut().for_each(|lane| lane.entries.retain(|entry| !entry.turn.is_closed()));
        self.lanes.retain(|lane| !lane.entries.is_empty());
        self.len = self.lanes.iter().map(|lane| lane.entries.len()).sum();
    }

    /// From now on this is what they wait for.
    pub(crate) fn wait_for(&self, what: For) {
        self.lanes.iter().flat_map(|lane| &lane.entries).for_each(|entry| entry.turn.waits_for(what));
    }

    /// Takes all out, by turns.
    pub(crate) fn drain(&mut self) -> Vec<Entry> {
        std::iter::from_fn(|| self.pop()).collect()
    }
}

impl Whose {
    fn of(call: &Call) -> Self {
        match &call.caller.tenant {
            Some(tenant) => Self::Session(tenant.id().clone()),
            None => Self::Principal(call.caller.principal.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::rig;
    use super::super::turn::{self, Wait};
    use super::*;
    use crate::call::{Caller, Tenant};
    use crate::protocol::{Method, Revision};

    fn entry(who: &str, number: usize) -> (Entry, Wait) {
        let call = rig::call(Revision::V2025_11_25, Method::ToolsCall, &format!("{{\"name\":\"{who}{number}\"}}"));
        let tenant = Some(Arc::new(Tenant::mute(who)));
        let call = Call { caller: Arc::new(Caller { tenant, ..(*call.caller).clone() }), ..call };
        let (turn, wait) = turn::wait(For::Start);
        (Entry { call, turn, place: None }, wait)
    }

    fn name(entry: &Entry) -> String {
        entry.call.params.text(crate::protocol::object::Key::Name).unwrap().into_owned()
    }

    #[test]
    fn callers_take_turns_and_each_ones_calls_keep_their_order() {
        let mut queue = Queue::default();
        let mut waits = Vec::new();
        for (who, number) in [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("c", 1), ("b", 2)] {
            let (entry, wait) = entry(who, number);
            assert!(matches!(queue.push(entry, 6), Pushed::In));
            waits.push(wait);
        }
        // Nobody waits for `a2` any more.
        drop(waits.remove(1));
        let mut order = Vec::new();
        while queue.first().is_some() {
            order.push(name(&queue.pop().unwrap()));
        }
        assert_eq!(order, ["a1", "b1", "c1", "b2", "a3"]);
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn whoever_has_most_waiting_makes_room_and_one_alone_gets_no_more() {
        let mut queue = Queue::default();
        let mut waits = Vec::new();
        let mut push = |queue: &mut Queue, who: &str, number| {
            let (entry, wait) = entry(who, number);
            waits.push(wait);
            match queue.push(entry, 4) {
                Pushed::In => None,
                Pushed::InsteadOf(refused) | Pushed::Refused(refused) => Some(name(&refused)),
            }
        };
        for number in 1..=4 {
            assert_eq!(push(&mut queue, "a", number), None);
        }
        assert_eq!(push(&mut queue, "a", 5).as_deref(), Some("a5"), "the newest of its own");
        assert_eq!(push(&mut queue, "b", 1).as_deref(), Some("a4"));
        assert_eq!(push(&mut queue, "b", 2).as_deref(), Some("a3"));
        assert_eq!(push(&mut queue, "b", 3).as_deref(), Some("b3"), "both have the same by now");
        assert_eq!(push(&mut queue, "c", 1).as_deref().map(|refused| &refused[1..]), Some("2"));
        assert_eq!(queue.len(), 4);
        // What is no longer waited for makes room first.
        drop(std::mem::take(&mut waits));
        let (entry, _wait) = entry("d", 1);
        assert!(matches!(queue.push(entry, 4), Pushed::In));
        assert_eq!(queue.len(), 1);
    }
}
