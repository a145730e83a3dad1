//! A bounded number of places of one kind, such as connections to an HTTP upstream: those who wait for one take turns by client, and
//! no client takes so many that others find none.

use crate::call::share::{Share, Tally, may_have};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// So many are kept for requests of the gateway's own.
const OWN: usize = 8;

/// Places of a bounded number, by share; `None` is the gateway's own.
#[derive(Debug)]
pub(crate) struct FairPermits {
    most: usize,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    held: usize,
    by: Tally,
    /// Those who wait, each share's in a lane of its own; the first lane that may have one is next.
    lanes: VecDeque<Lane>,
}

#[derive(Debug)]
struct Lane {
    whose: Option<Share>,
    waiting: VecDeque<oneshot::Sender<FairPermit>>,
}

/// One place; dropped, it is somebody else's.
#[derive(Debug)]
pub(crate) struct FairPermit {
    of: Arc<FairPermits>,
    whose: Option<Share>,
}

impl FairPermits {
    /// So many places, of which one share alone gets half.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, inner: Mutex::default() })
    }

    /// A place, where the share may have one at once and none of it waits.
    pub(crate) fn take(self: &Arc<Self>, whose: Option<&Share>) -> Option<FairPermit> {
        let mut inner = self.lock();
        let is_first = inner.lanes.is_empty() || inner.lanes.iter().all(|lane| lane.whose.as_ref() != whose);
        let free = self.free(&inner, whose);
        let is_taken = is_first
            && match whose {
                None => free > 0,
                Some(share) => inner.by.add_where(share, |own| may_have(own, free)),
            };
        is_taken.then(|| self.placed(&mut inner, whose))
    }

    /// How many are taken.
    pub(crate) fn held(&self) -> usize {
        self.lock().held
    }

    /// A place, in its turn.
    pub(crate) async fn wait(self: &Arc<Self>, whose: Option<&Share>) -> Option<FairPermit> {
        self.queue(whose).await.ok()
    }

    /// Waits for a place from now on, whenever that is asked for.
    pub(crate) fn queue(self: &Arc<Self>, whose: Option<&Share>) -> oneshot::Receiver<FairPermit> {
        let (turn, coming) = oneshot::channel();
        {
            let mut inner = self.lock();
            match inner.lanes.iter_mut().find(|lane| lane.whose.as_ref() == whose) {
                Some(lane) => {
                    lane.waiting.retain(|turn| !turn.is_closed());
                    lane.waiting.push_back(turn);
                }
                None => inner.lanes.push_back(Lane { whose: whose.cloned(), waiting: VecDeque::from([turn]) }),
            }
        }
        // One may have become free before the lane was there.
        self.give();
        coming
    }

    fn has_place(&self, inner: &Inner, whose: Option<&Share>) -> bool {
        let free = self.free(inner, whose);
        match whose {
            None => free > 0,
            Some(share) => may_have(inner.by.of(share), free),
        }
    }

    /// How many are free for such a one.
    fn free(&self, inner: &Inner, whose: Option<&Share>) -> usize {
        let free = self.most.saturating_sub(inner.held);
        if whose.is_some() { free.saturating_sub(OWN) } else { free }
    }

    /// Gives free places to those whose turn it is.
    fn give(self: &Arc<Self>) {
        loop {
            let mut inner = self.lock();
            let Some((whose, turn)) = self.next(&mut inner) else { return };
            let place = self.place(&mut inner, whose.as_ref());
            drop(inner);
            // Who has gone meanwhile gives it back by that.
            drop(turn.send(place));
        }
    }

    /// Who comes next, taken out; the lane stands behind the others afterwards.
    fn next(&self, inner: &mut Inner) -> Option<(Option<Share>, oneshot::Sender<FairPermit>)> {
        for lane in &mut inner.lanes {
            while lane.waiting.front().is_some_and(oneshot::Sender::is_closed) {
                lane.waiting.pop_front();
            }
        }
        inner.lanes.retain(|lane| !lane.waiting.is_empty());
        let at = inner.lanes.iter().position(|lane| self.has_place(inner, lane.whose.as_ref()))?;
        let mut lane = inner.lanes.remove(at)?;
        let (whose, turn) = (lane.whose.clone(), lane.waiting.pop_front()?);
        if !lane.waiting.is_empty() {
            inner.lanes.push_back(lane);
        }
        Some((whose, turn))
    }

    fn place(self: &Arc<Self>, inner: &mut Inner, whose: Option<&Share>) -> FairPermit {
        whose.into_iter().for_each(|share| inner.by.add(share));
        self.placed(inner, whose)
    }

    /// The place of who was counted.
    fn placed(self: &Arc<Self>, inner: &mut Inner, whose: Option<&Share>) -> FairPermit {
        inner.held += 1;
        FairPermit { of: self.clone(), whose: whose.cloned() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for FairPermit {
    fn drop(&mut self) {
        let mut inner = self.of.lock();
        inner.held -= 1;
        self.whose.iter().for_each(|share| inner.by.remove(share));
        let is_awaited = !inner.lanes.is_empty();
        drop(inner);
        if is_awaited {
            self.of.give();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::caller::Principal;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    fn share(name: &str) -> Share {
        Share::Principal(Principal::named(name))
    }

    fn all(room: &Arc<FairPermits>, name: &str) -> Vec<FairPermit> {
        std::iter::from_fn(|| room.take(Some(&share(name)))).collect()
    }

    type Waits = Pin<Box<dyn Future<Output = Option<FairPermit>>>>;

    fn waits(room: &Arc<FairPermits>, name: &str) -> Waits {
        let (room, share) = (room.clone(), share(name));
        let mut waits: Waits = Box::pin(async move { room.wait(Some(&share)).await });
        assert!(poll(&mut waits).is_none());
        waits
    }

    fn poll(waits: &mut Waits) -> Option<FairPermit> {
        match waits.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(place) => place,
            Poll::Pending => None,
        }
    }

    #[test]
    fn one_clients_hanging_calls_leave_connections_for_others_and_for_us() {
        let room = FairPermits::new(64 + OWN);
        let one = all(&room, "one");
        let other = all(&room, "other");
        assert_eq!((one.len(), other.len()), (32, 16));
        assert!(room.take(Some(&share("one"))).is_none());
        let own: Vec<_> = std::iter::from_fn(|| room.take(None)).collect();
        assert_eq!(own.len(), 16 + OWN);
        drop((one, other, own));
        assert!(room.lock().held == 0 && room.lock().by.is_empty());
    }

    #[test]
    fn those_who_wait_take_turns_by_client_and_who_has_gone_is_passed_over() {
        let room = FairPermits::new(3 + OWN);
        let mut held = all(&room, "one");
        held.extend(all(&room, "x"));
        assert_eq!(held.len(), 3);
        let mut of_one: Vec<_> = (0..3).map(|_| waits(&room, "one")).collect();
        let (gone, mut of_other) = (waits(&room, "other"), waits(&room, "other"));
        drop(gone);
        drop(held.pop());
        let others = poll(&mut of_other).expect("the last one is not for who has two already");
        assert!(of_one.iter_mut().find_map(poll).is_none());
        drop(held);
        let ones: Vec<_> = of_one.iter_mut().filter_map(poll).collect();
        assert_eq!(ones.len(), 1, "the last one is kept for others");
        drop((others, ones));
        assert!(of_one[1..].iter_mut().find_map(poll).is_some());
    }
}
