//! The calls that wait for one upstream: bounded, those of one session in their order, shares and their sessions by turns.

use super::waiter::{Waiting, WaitingFor};
use crate::call::Call;
use crate::call::share::Share;
use crate::transport::exchange::Permit;
use std::collections::VecDeque;
use std::sync::Arc;

/// A call that waits.
pub(crate) struct Entry {
    pub(crate) call: Call,
    pub(crate) turn: Waiting,
    /// The place that it has already.
    pub(crate) place: Option<Permit>,
}

/// What became of a call that was to wait. Of too many the newest of the share that has most waiting is refused.
pub(crate) enum Pushed {
    /// It waits.
    In,
    /// It waits, and this one makes room for it.
    InsteadOf(Entry),
    /// It is refused itself.
    Refused(Entry),
}

/// The calls that wait. Shares take turns, and within one share its sessions do.
#[derive(Default)]
pub(crate) struct Queue {
    lanes: VecDeque<Lane>,
    len: usize,
}

/// The calls of one share. No session stands here with none.
struct Lane {
    share: Share,
    len: usize,
    sessions: VecDeque<OfSession>,
}

/// The calls of one session, or those of a share that come in no session.
struct OfSession {
    id: Option<Arc<str>>,
    entries: VecDeque<Entry>,
}

impl Queue {
    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Puts a call behind those of its session; no more than `most` wait.
    pub(crate) fn push(&mut self, entry: Entry, most: usize) -> Pushed {
        if self.len >= most {
            self.prune();
        }
        let share = entry.call.caller.share();
        let id = entry.call.caller.tenant.as_ref().map(|tenant| tenant.id().clone());
        let pushed = match self.len >= most {
            true => match self.make_room(&share, id.as_ref()) {
                Some(newest) => Pushed::InsteadOf(newest),
                None => return Pushed::Refused(entry),
            },
            false => Pushed::In,
        };
        self.len += 1;
        match self.lanes.iter_mut().find(|lane| lane.share == share) {
            Some(lane) => lane.push(id, entry),
            None => {
                let sessions = VecDeque::from([OfSession { id, entries: VecDeque::from([entry]) }]);
                self.lanes.push_back(Lane { share, len: 1, sessions });
            }
        }
        pushed
    }

    /// Takes the newest call of the share out that has most waiting. Where no other share has at least two more than this one, the
    /// sessions of this share are compared the same way.
    fn make_room(&mut self, share: &Share, id: Option<&Arc<str>>) -> Option<Entry> {
        let own = self.lanes.iter().position(|lane| lane.share == *share);
        let own_len = own.map_or(0, |at| self.lanes[at].len);
        let longest = (0..self.lanes.len()).max_by_key(|at| self.lanes[*at].len)?;
        let newest = match self.lanes[longest].len > own_len + 1 {
            true => self.lanes[longest].pop_newest(0),
            false => {
                let lane = &mut self.lanes[own?];
                let of_session = lane.sessions.iter().find(|session| session.id.as_ref() == id);
                let of_session = of_session.map_or(0, |session| session.entries.len());
                lane.pop_newest(of_session + 1)
            }
        };
        self.len -= usize::from(newest.is_some());
        newest
    }

    /// The call whose turn it is: of the shares that hold fewest permits, as `held` says, the one that was served longest ago.
    pub(crate) fn first(&mut self, held: impl Fn(&Share) -> usize) -> Option<&Entry> {
        loop {
            let at = self.next(&held)?;
            let lane = &mut self.lanes[at];
            self.len -= lane.prune_first();
            match lane.len {
                0 => drop(self.lanes.remove(at)),
                _ => {
                    let lane = self.lanes.remove(at)?;
                    self.lanes.push_front(lane);
                    break;
                }
            }
        }
        self.lanes.front()?.sessions.front()?.entries.front()
    }

    /// Whose turn it is.
    fn next(&self, held: impl Fn(&Share) -> usize) -> Option<usize> {
        let mut fewest: Option<(usize, usize)> = None;
        for (at, lane) in self.lanes.iter().enumerate() {
            let held = held(&lane.share);
            if fewest.is_none_or(|(_, least)| held < least) {
                fewest = Some((at, held));
            }
            if held == 0 {
                break;
            }
        }
        fewest.map(|(at, _)| at)
    }

    /// Takes the call out that [`Self::first`] told of. Its session stands behind the others of its share then, and the share behind
    /// the other shares.
    pub(crate) fn pop(&mut self) -> Option<Entry> {
        let mut lane = self.lanes.pop_front()?;
        let entry = lane.pop();
        self.len -= usize::from(entry.is_some());
        if lane.len > 0 {
            self.lanes.push_back(lane);
        }
        entry
    }

    /// Forgets those that are no longer waited for.
    pub(crate) fn prune(&mut self) {
        self.lanes.iter_mut().for_each(Lane::prune);
        self.lanes.retain(|lane| lane.len > 0);
        self.len = self.lanes.iter().map(|lane| lane.len).sum();
    }

    /// From now on this is what they wait for.
    pub(crate) fn wait_for(&self, what: WaitingFor) {
        let sessions = self.lanes.iter().flat_map(|lane| &lane.sessions);
        sessions.flat_map(|session| &session.entries).for_each(|entry| entry.turn.waits_for(what));
    }

    /// Takes all out, by turns.
    pub(crate) fn drain(&mut self) -> Vec<Entry> {
        std::iter::from_fn(|| self.pop()).collect()
    }
}

impl Lane {
    fn push(&mut self, id: Option<Arc<str>>, entry: Entry) {
        self.len += 1;
        match self.sessions.iter_mut().find(|session| session.id == id) {
            Some(session) => session.entries.push_back(entry),
            None => self.sessions.push_back(OfSession { id, entries: VecDeque::from([entry]) }),
        }
    }

    /// Takes the call out whose turn it is.
    fn pop(&mut self) -> Option<Entry> {
        let mut session = self.sessions.pop_front()?;
        let entry = session.entries.pop_front();
        self.len -= usize::from(entry.is_some());
        if !session.entries.is_empty() {
            self.sessions.push_back(session);
        }
        entry
    }

    /// Takes the newest call of the session out that has most waiting, where it has more than so many.
    fn pop_newest(&mut self, more_than: usize) -> Option<Entry> {
        let at = (0..self.sessions.len()).max_by_key(|at| self.sessions[*at].entries.len())?;
        let entries = &mut self.sessions[at].entries;
        let newest = if entries.len() > more_than { entries.pop_back() } else { None };
        self.len -= usize::from(newest.is_some());
        if entries.is_empty() {
            self.sessions.remove(at);
        }
        newest
    }

    /// Forgets those before the next call that is waited for; how many they were.
    fn prune_first(&mut self) -> usize {
        let before = self.len;
        let next = |lane: &Self| lane.sessions.front()?.entries.front().map(|entry| entry.turn.is_closed());
        while next(self) == Some(true) {
            self.pop();
        }
        before - self.len
    }

    fn prune(&mut self) {
        self.sessions.iter_mut().for_each(|session| session.entries.retain(|entry| !entry.turn.is_closed()));
        self.sessions.retain(|session| !session.entries.is_empty());
        self.len = self.sessions.iter().map(|session| session.entries.len()).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::caller::{Caller, ClientSession, Principal};
    use crate::protocol::frame::Method;
    use crate::protocol::revision::Revision;
    use crate::upstream::instance::admission::waiter;
    use crate::upstream::instance::admission::waiter::Wait;
    use crate::upstream::tests::rig;

    /// A call of a session; what stands before a slash names its principal.
    fn entry(who: &str, number: usize) -> (Entry, Wait) {
        let call = rig::call(Revision::V2025_11_25, Method::ToolsCall, &format!("{{\"name\":\"{who}{number}\"}}"));
        let tenant = Some(Arc::new(ClientSession::mute(who)));
        let principal =
            who.split_once('/').map_or(Principal::anonymous(), |(principal, _)| Principal::named(principal));
        let call = Call { caller: Arc::new(Caller { principal, tenant, ..(*call.caller).clone() }), ..call };
        let (turn, wait) = waiter::wait(WaitingFor::Start);
        (Entry { call, turn, place: None }, wait)
    }

    fn name(entry: &Entry) -> String {
        entry.call.params.text(crate::protocol::value::Key::Name).unwrap().into_owned()
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
        while queue.first(|_| 0).is_some() {
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

    #[test]
    fn many_sessions_of_one_principal_take_turns_as_one_and_make_room_as_one() {
        let mut queue = Queue::default();
        let mut waits = Vec::new();
        let mut push = |queue: &mut Queue, who: &str, number| {
            let (entry, wait) = entry(who, number);
            waits.push(wait);
            match queue.push(entry, 6) {
                Pushed::In => None,
                Pushed::InsteadOf(refused) | Pushed::Refused(refused) => Some(name(&refused)),
            }
        };
        for session in ["ann/1", "ann/2", "ann/3", "ann/4", "ann/5", "ann/6"] {
            assert_eq!(push(&mut queue, session, 0), None);
        }
        assert_eq!(push(&mut queue, "ann/7", 0).as_deref(), Some("ann/70"), "its sessions are no better off than it");
        for number in 1..=3 {
            let refused = push(&mut queue, "bob/1", number).unwrap();
            assert!(refused.starts_with("ann/"), "{refused} made no room for bob's call {number}");
        }
        assert_eq!(
            push(&mut queue, "bob/2", 1).as_deref(),
            Some("bob/13"),
            "both have three; bob's first session has most"
        );
        let order: Vec<_> = queue.drain().iter().map(|entry| name(entry)[..3].to_owned()).collect();
        assert_eq!(order, ["ann", "bob", "ann", "bob", "ann", "bob"]);
    }

    #[test]
    fn the_share_that_holds_fewest_permits_is_next() {
        let mut queue = Queue::default();
        let mut waits = Vec::new();
        for (who, number) in [("ann/1", 1), ("ann/2", 1), ("bob/1", 1), ("bob/1", 2), ("cat/1", 1)] {
            let (entry, wait) = entry(who, number);
            assert!(matches!(queue.push(entry, 6), Pushed::In));
            waits.push(wait);
        }
        let held = |share: &Share| match share.to_string() {
            share if share.contains("ann") => 2,
            share if share.contains("bob") => 1,
            _ => 0,
        };
        let mut order = Vec::new();
        while queue.first(held).is_some() {
            order.push(name(&queue.pop().unwrap()));
        }
        assert_eq!(order, ["cat/11", "bob/11", "bob/12", "ann/11", "ann/21"]);
    }
}
