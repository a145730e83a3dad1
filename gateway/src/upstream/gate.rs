//! How calls get at the peer that is live now: at once, in the order in which they came while it starts, or not at all.

use super::link::{Exchange, Lost};
use super::peer::Peer;
use crate::call::Call;
use arc_swap::ArcSwapOption;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, oneshot};

/// How many calls wait for an upstream that starts.
const QUEUE_MAX: usize = 256;

/// A call that was sent: to whom, and what it waits on.
pub(crate) struct Sent {
    pub(crate) peer: Arc<Peer>,
    pub(crate) exchange: Exchange,
}

/// A waiting call's turn: it was sent, or it could not be.
pub(crate) type Turn = Result<Sent, Lost>;

/// What became of a call that was taken.
pub(crate) enum Sending {
    /// It was sent.
    Sent(Sent),
    /// It waits for its turn.
    Waiting(oneshot::Receiver<Turn>),
}

/// What the gate does with a call.
pub(crate) enum Admission {
    /// The peer is live.
    Now(Arc<Peer>),
    /// It will be soon; the call waits here, nothing sent.
    Wait(oneshot::Receiver<Turn>),
    /// Too many wait already.
    Full,
    /// It will not be soon; why.
    Shut(Arc<str>),
}

/// Why a live peer was given up by a call.
#[derive(Debug, Clone)]
pub(crate) enum Retired {
    /// It no longer knows the session.
    Session(Arc<str>),
    /// It cannot be reached.
    Unreachable(Arc<str>),
    /// It no longer speaks the revision.
    Revision(Arc<str>),
}

/// Who waits for a turn.
pub(crate) type Waiting = oneshot::Sender<Turn>;

/// Hands a waiting call to a peer, or to another gate.
pub(crate) type Hand<'a> = dyn Fn(&Arc<Peer>, Call, Waiting) + Send + Sync + 'a;

/// The gate of one upstream.
pub(crate) struct Gate {
    open: ArcSwapOption<Peer>,
    door: Mutex<Door>,
    retired: Notify,
}

struct Door {
    /// The peer that is being made ready, or is live.
    current: Option<Arc<Peer>>,
    queue: VecDeque<(Call, Waiting)>,
    /// Why no call may wait; `None` while the peer is expected soon.
    shut: Option<Arc<str>>,
    why: Option<Retired>,
}

impl Default for Gate {
    fn default() -> Self {
        let door = Door { current: None, queue: VecDeque::new(), shut: None, why: None };
        Self { open: ArcSwapOption::empty(), door: Mutex::new(door), retired: Notify::new() }
    }
}

impl Gate {
    /// Where a call goes. It is cloned only when it must wait.
    pub(crate) fn admit(&self, call: &Call) -> Admission {
        if let Some(peer) = &*self.open.load() {
            return Admission::Now(peer.clone());
        }
        let mut door = self.door();
        // It may have opened while the door was being looked at.
        if let Some(peer) = self.open.load_full() {
            return Admission::Now(peer);
        }
        if let Some(cause) = &door.shut {
            return Admission::Shut(cause.clone());
        }
        if door.queue.len() >= QUEUE_MAX {
            door.queue.retain(|(_, waiting)| !waiting.is_closed());
            if door.queue.len() >= QUEUE_MAX {
                return Admission::Full;
            }
        }
        let (turn, wait) = oneshot::channel();
        door.queue.push_back((call.clone(), turn));
        Admission::Wait(wait)
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
        for (call, turn) in door.queue.drain(..).filter(|(_, turn)| !turn.is_closed()) {
            hand(peer, call, turn);
        }
        self.open.store(Some(peer.clone()));
    }

    /// Has a call that waited at another gate wait here, or go on at once.
    pub(crate) fn queue(&self, call: Call, turn: Waiting, hand: &Hand<'_>) {
        let mut door = self.door();
        if let Some(peer) = self.open.load_full() {
            return hand(&peer, call, turn);
        }
        let refused = match &door.shut {
            Some(cause) => Lost::Unsent(cause.clone()),
            None if door.queue.len() >= QUEUE_MAX => Lost::Busy("too many calls wait for it to start".into()),
            None => return door.queue.push_back((call, turn)),
        };
        let _ = turn.send(Err(refused));
    }

    /// Shuts, and gives out what waits.
    pub(crate) fn clear(&self, cause: &Arc<str>) -> Vec<(Call, Waiting)> {
        let mut door = self.door();
        self.open.store(None);
        (door.current, door.shut, door.why) = (None, Some(cause.clone()), None);
        door.queue.drain(..).collect()
    }

    /// Closes; calls that come now wait, since a peer is expected soon.
    pub(crate) fn close(&self) {
        let mut door = self.door();
        self.open.store(None);
        (door.current, door.shut, door.why) = (None, None, None);
    }

    /// Shuts: calls are refused with the cause, those that wait too.
    pub(crate) fn shut(&self, cause: &Arc<str>) {
        for (_, turn) in self.clear(cause) {
            let _ = turn.send(Err(Lost::Unsent(cause.clone())));
        }
    }

    /// Gives a peer up, where it was not yet: many calls may find out, one supervisor acts.
    pub(crate) fn retire(&self, peer: &Arc<Peer>, why: Retired) {
        let mut door = self.door();
        if door.has(peer) {
            self.open.store(None);
            (door.current, door.why) = (None, Some(why));
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
