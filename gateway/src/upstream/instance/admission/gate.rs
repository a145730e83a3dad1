//! How calls get at the peer that is live now: at once, in the order in which they came while it starts, or not at all.

use super::queue::{Entry, Pushed, Queue};
use super::waiter;
use super::waiter::{Sent, Wait, WaitingFor};
use crate::call::Call;
use crate::call::share::Share;
use crate::health::{Cause, CauseCode};
use crate::peer::Peer;
use crate::transport::exchange::Lost;
use crate::transport::exchange::{ConcurrencyLimit, Permit};
use arc_swap::ArcSwapOption;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// What became of a call that was taken.
pub(crate) enum Sending {
    /// It was sent.
    Sent(Sent),
    /// It waits for its turn.
    Waiting(Wait),
}

/// What the gate decides on a call.
pub(crate) enum GateDecision {
    /// The peer is live, and has a place for the call, where it needs one.
    Now(Arc<Peer>, Option<Permit>),
    /// It will be soon, or will have; the call waits here, nothing sent.
    Wait(Wait),
    /// Too many wait already, in words.
    Full(Cause),
    /// It will not be soon: as the call would have been told that waited.
    Shut(Lost),
}

/// Why a live peer was given up by a call.
#[derive(Debug, Clone)]
pub(crate) enum Retired {
    /// It no longer knows the session.
    Session(Cause),
    /// It cannot be reached.
    Unreachable(Cause),
    /// It no longer speaks the revision.
    Revision(Cause),
    /// It is there and answers nothing.
    Hung(Cause),
}

/// Hands a waiting call to a peer, or to another gate.
pub(crate) type Hand<'a> = dyn Fn(&Arc<Peer>, Entry) + Send + Sync + 'a;

/// The gate of one upstream.
pub(crate) struct Gate {
    open: ArcSwapOption<Peer>,
    places: Arc<ConcurrencyLimit>,
    /// So many calls may wait.
    queue_max: usize,
    door: Mutex<Door>,
    retired: Notify,
}

struct Door {
    /// The peer that is being made ready, or is live.
    current: Option<Arc<Peer>>,
    queue: Queue,
    /// What a call is told, since none may wait; `None` while the peer is expected soon.
    shut: Option<Lost>,
    why: Option<Retired>,
}

impl Gate {
    /// A gate that lets as many calls through as there are places.
    pub(crate) fn new(places: Arc<ConcurrencyLimit>, queue_max: usize) -> Self {
        let door = Door { current: None, queue: Queue::default(), shut: None, why: None };
        Self { open: ArcSwapOption::empty(), places, queue_max, door: Mutex::new(door), retired: Notify::new() }
    }

    /// Where a call goes, which may have a place already. It is cloned only when it must wait.
    pub(crate) fn admit(&self, call: &Call, place: Option<Permit>) -> GateDecision {
        let needs_place = place.is_none() && self.places.are_for(call);
        if let Some(peer) = &*self.open.load() {
            if !needs_place {
                return GateDecision::Now(peer.clone(), place);
            }
            if self.places.is_quiet()
                && let Some(place) = self.places.take(&call.caller.share())
            {
                return GateDecision::Now(peer.clone(), Some(place));
            }
        }
        let mut door = self.door();
        self.places.wait(door.queue.len() + 1);
        let decision = self.admit_at(&mut door, call, place, needs_place);
        self.places.wait(door.queue.len());
        decision
    }

    /// The same, where it was not let through at once.
    fn admit_at(&self, door: &mut Door, call: &Call, place: Option<Permit>, needs_place: bool) -> GateDecision {
        // It may have opened, or a place may have become free, while the door was being looked at.
        let wait_for = match self.open.load_full() {
            Some(peer) if !needs_place => return GateDecision::Now(peer, place),
            Some(peer) => {
                door.queue.prune();
                match (door.queue.len() == 0).then(|| self.places.take(&call.caller.share())).flatten() {
                    Some(place) => return GateDecision::Now(peer, Some(place)),
                    None => WaitingFor::Place,
                }
            }
            None => match &door.shut {
                Some(shut) => return GateDecision::Shut(shut.clone()),
                None => WaitingFor::Start,
            },
        };
        let (turn, wait) = waiter::wait(wait_for);
        match door.queue.push(Entry { call: call.clone(), turn, place }, self.queue_max) {
            Pushed::In => GateDecision::Wait(wait),
            Pushed::InsteadOf(other) => {
                other.turn.send(Err(Lost::Busy(self.fullness(wait_for))));
                GateDecision::Wait(wait)
            }
            Pushed::Refused(_) => GateDecision::Full(self.fullness(wait_for)),
        }
    }

    /// Why a call is refused that finds too many before it.
    fn fullness(&self, wait_for: WaitingFor) -> Cause {
        self.places.refused();
        let waits = match self.queue_max {
            0 => "none may wait".to_owned(),
            most => format!("{most} more wait"),
        };
        match (wait_for, self.places.most()) {
            (WaitingFor::Place, Some(most)) => {
                let said = format!("busy: {most} calls running (`max_concurrency`), {waits} (`queue`)");
                Cause::new(CauseCode::QueueFull, said).advise("raise either")
            }
            _ => Cause::new(CauseCode::QueueFull, format!("still starting, {waits} (`queue`, can be raised)")),
        }
    }

    /// The peer that is live now.
    pub(crate) fn peer(&self) -> Option<Arc<Peer>> {
        self.open.load_full()
    }

    /// This peer is being made ready.
    pub(crate) fn expect(&self, peer: &Arc<Peer>) {
        let mut door = self.door();
        door.current = Some(peer.clone());
        (door.shut, door.why) = (None, None);
    }

    /// Opens for the peer that is expected: what waits goes first, in its order. A peer that was given up is not opened for.
    pub(crate) fn open(&self, peer: &Arc<Peer>, hand: &Hand<'_>) {
        let mut door = self.door();
        if !door.has(peer) || self.open.load().is_some() {
            return;
        }
        self.serve(&mut door, peer, hand);
        self.open.store(Some(peer.clone()));
        // Their upstream is there: it is the calls before them that they wait for.
        door.queue.wait_for(WaitingFor::Place);
    }

    /// Lets calls through for which places have become free.
    pub(crate) fn serve_waiting(&self, hand: &Hand<'_>) {
        let mut door = self.door();
        if let Some(peer) = self.open.load_full() {
            self.serve(&mut door, &peer, hand);
        }
    }

    /// Hands out what waits, for as long as there are places, to a peer that can take it.
    fn serve(&self, door: &mut Door, peer: &Arc<Peer>, hand: &Hand<'_>) {
        // A share that has all permits gives way to the others as soon as it frees one.
        let held = |share: &Share| self.places.held_by(share);
        while let Some(first) = door.queue.first(held).filter(|_| !peer.link.is_closed()) {
            let mut place = None;
            if first.place.is_none() && self.places.are_for(&first.call) {
                place = self.places.take(&first.call.caller.share());
                if place.is_none() {
                    break;
                }
            }
            if let Some(entry) = door.queue.pop() {
                hand(peer, Entry { place: place.or(entry.place), ..entry });
            }
        }
        // Only now: nobody overtakes what is being handed out.
        self.places.wait(door.queue.len());
    }

    /// A call is no longer waited for.
    pub(crate) fn forget(&self) {
        let mut door = self.door();
        door.queue.prune();
        self.places.wait(door.queue.len());
    }

    /// Resolves when [`Self::serve_waiting`] has something to do.
    pub(crate) async fn freed(&self) {
        self.places.freed().await;
    }

    /// Has a call that waited at another gate wait here, or go on at once.
    pub(crate) fn queue(&self, entry: Entry, hand: &Hand<'_>) {
        let mut door = self.door();
        if let Some(peer) = self.open.load_full().filter(|_| entry.place.is_some() || !self.places.are_for(&entry.call))
        {
            return hand(&peer, entry);
        }
        if let Some(shut) = &door.shut {
            return entry.turn.send(Err(shut.clone()));
        }
        self.places.wait(door.queue.len() + 1);
        let wait_for = if self.open.load().is_some() { WaitingFor::Place } else { WaitingFor::Start };
        entry.turn.waits_for(wait_for);
        match door.queue.push(entry, self.queue_max) {
            Pushed::In => {}
            Pushed::InsteadOf(other) | Pushed::Refused(other) => {
                other.turn.send(Err(Lost::Busy(self.fullness(wait_for))));
            }
        }
        self.places.wait(door.queue.len());
    }

    /// Shuts, and gives out what waits.
    pub(crate) fn clear(&self, cause: &Cause) -> Vec<Entry> {
        self.cleared(Lost::Unsent(cause.clone()))
    }

    fn cleared(&self, shut: Lost) -> Vec<Entry> {
        let mut door = self.door();
        self.open.store(None);
        (door.current, door.shut, door.why) = (None, Some(shut), None);
        let waited = door.queue.drain();
        self.places.wait(0);
        waited
    }

    /// Closes; calls that come now wait, since a peer is expected soon.
    pub(crate) fn close(&self) {
        let mut door = self.door();
        self.open.store(None);
        (door.current, door.shut, door.why) = (None, None, None);
        door.queue.wait_for(WaitingFor::Start);
    }

    /// Shuts: calls are refused with the cause, those that wait too.
    pub(crate) fn shut(&self, cause: &Cause) {
        self.shut_with(Lost::Unsent(cause.clone()));
    }

    /// Shuts until an order opens: it is of no use to try a call again.
    pub(crate) fn shut_for_good(&self, cause: &Cause) {
        self.shut_with(Lost::Stopped(cause.clone()));
    }

    fn shut_with(&self, shut: Lost) {
        for entry in self.cleared(shut.clone()) {
            entry.turn.send(Err(shut.clone()));
        }
    }

    /// Gives a peer up, where it was not yet: many calls may find out, one supervisor acts.
    pub(crate) fn retire(&self, peer: &Arc<Peer>, why: Retired) {
        let mut door = self.door();
        if door.has(peer) {
            self.open.store(None);
            (door.current, door.why) = (None, Some(why));
            door.queue.wait_for(WaitingFor::Start);
            self.retired.notify_one();
        }
    }

    /// Resolves when the live peer was given up.
    pub(crate) async fn retired(&self) -> Retired {
        loop {
            if let Some(why) = self.door().why.take() {
                return why;
            }
            self.retired.notified().await;
        }
    }

    fn door(&self) -> MutexGuard<'_, Door> {
        self.door.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Door {
    fn has(&self, peer: &Arc<Peer>) -> bool {
        self.current.as_ref().is_some_and(|current| Arc::ptr_eq(current, peer))
    }
}
