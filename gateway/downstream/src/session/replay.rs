//! What was sent on one legacy stream, kept so that a client can come back for it; bounded.

use crate::memory::account::Kind;
use crate::memory::budget::{Budget, Charge, Spent};
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use tokio::time::Instant;

/// What a stream takes, and each of its events beside its bytes: its place, its count of readers, the room that its buffer was made
/// with. An event of 90 bytes takes 180 altogether.
const STREAM: usize = 512;
const EVENT: usize = 96;
/// The allocator rounds up, by so much of the bytes in the mean.
const ROUNDED: usize = 8;

/// One stream: written by the task of its call, read by whichever connection came last for it.
#[derive(Debug)]
pub(crate) struct Replay {
    /// Which of the session's streams it is.
    pub(crate) number: u64,
    bytes_max: usize,
    budget: Budget,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Numbered from 1, without gaps.
    events: VecDeque<(u64, Bytes)>,
    bytes: usize,
    /// Counts what they take.
    charge: Charge,
    /// The number of the newest event.
    newest: u64,
    /// The newest event that was handed to a connection.
    read: u64,
    /// Which connection reads: the newest.
    reader: u64,
    attached: bool,
    ended: Option<Instant>,
    reader_waker: Option<Waker>,
    writer_waker: Option<Waker>,
    /// Woken when a connection comes or leaves.
    attached_waker: Option<Waker>,
}

/// A connection's hold on a stream.
#[derive(Debug)]
pub(crate) struct Reader {
    replay: Arc<Replay>,
    turn: u64,
}

impl Replay {
    pub(crate) fn new(number: u64, bytes_max: usize, budget: &Budget) -> Arc<Self> {
        Arc::new(Self { number, bytes_max, budget: budget.clone(), inner: Mutex::default() })
    }

    /// Resolves when another event may be written: a connection that reads too slowly holds up its own call alone.
    pub(crate) async fn room(&self) {
        std::future::poll_fn(|cx| self.poll_room(cx)).await;
    }

    fn poll_room(&self, cx: &Context<'_>) -> Poll<()> {
        let mut inner = self.lock();
        if inner.ended.is_some() || inner.bytes <= self.bytes_max || inner.oldest_may_go() {
            return Poll::Ready(());
        }
        inner.writer_waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Writes an event. The oldest go where it is too much, but never one that an attached connection still has to read; an
    /// error where there is no memory for it.
    pub(crate) fn push(self: &Arc<Self>, frame: Bytes) -> Result<(), Spent> {
        let mut inner = self.lock();
        if inner.ended.is_some() {
            return Ok(());
        }
        let bytes = inner.bytes + frame.len();
        let taken = taken(bytes, inner.events.len() + 1);
        inner.charge.grow(&self.budget, Kind::Replay, taken)?;
        let lost = Waker::from(Arc::new(GiveUp(Arc::downgrade(self))));
        if inner.charge.give_up_by(&lost).is_ready() {
            inner.give_up();
            return Ok(());
        }
        inner.newest += 1;
        inner.bytes = bytes;
        let number = inner.newest;
        inner.events.push_back((number, frame));
        inner.evict(self.bytes_max);
        wake(&mut inner.reader_waker);
        Ok(())
    }

    /// Resolves once a connection reads, or once none does.
    pub(crate) async fn is_attached(&self, wanted: bool) {
        std::future::poll_fn(|cx| {
            let mut inner = self.lock();
            if inner.attached == wanted {
                return Poll::Ready(());
            }
            inner.attached_waker = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Nothing more will be written.
    pub(crate) fn end(&self) {
        let mut inner = self.lock();
        inner.ended.get_or_insert_with(Instant::now);
        wake(&mut inner.reader_waker);
        wake(&mut inner.writer_waker);
    }

    /// Reads on behind event number `after`, in place of whoever read before; `None` where what follows is not there.
    pub(crate) fn attach(self: &Arc<Self>, after: u64) -> Option<Reader> {
        let mut inner = self.lock();
        let oldest = inner.events.front().map_or(inner.newest + 1, |(number, _)| *number);
        if after > inner.newest || oldest > after + 1 {
            return None;
        }
        inner.read = after;
        inner.reader += 1;
        inner.attached = true;
        wake(&mut inner.reader_waker);
        wake(&mut inner.attached_waker);
        Some(Reader { replay: self.clone(), turn: inner.reader })
    }

    /// How long ago it ended, if it has.
    pub(crate) fn ended(&self) -> Option<Duration> {
        self.lock().ended.map(|at| at.elapsed())
    }

    /// How much it keeps.
    pub(crate) fn bytes(&self) -> usize {
        self.lock().bytes
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn oldest_may_go(&self) -> bool {
        !self.attached || self.events.front().is_some_and(|(number, _)| *number <= self.read)
    }

    fn evict(&mut self, bytes_max: usize) {
        while self.bytes > bytes_max
            && self.oldest_may_go()
            && let Some((_, frame)) = self.events.pop_front()
        {
            self.bytes -= frame.len();
        }
        self.charge.shrink(if self.events.is_empty() { 0 } else { taken(self.bytes, self.events.len()) });
        if self.events.len() < self.events.capacity() / 4 {
            self.events.shrink_to_fit();
        }
    }

    /// Forgets all that it keeps: nobody can come back for it, and a connection that has not read it yet ends.
    fn give_up(&mut self) {
        (self.events, self.bytes, self.charge) = Default::default();
        if self.read < self.newest {
            self.ended.get_or_insert_with(Instant::now);
        }
        wake(&mut self.reader_waker);
        wake(&mut self.writer_waker);
    }
}

/// What so many bytes of so many events take.
fn taken(bytes: usize, events: usize) -> usize {
    STREAM + bytes + bytes / ROUNDED + events * EVENT
}

/// Gives a stream's events up when it is woken.
struct GiveUp(Weak<Replay>);

impl Wake for GiveUp {
    fn wake(self: Arc<Self>) {
        if let Some(replay) = self.0.upgrade() {
            replay.lock().give_up();
        }
    }
}

impl Reader {
    /// The next event and its number; `None` at the end, or when another connection has taken over.
    pub(crate) fn poll_next(&mut self, cx: &Context<'_>) -> Poll<Option<(u64, Bytes)>> {
        let mut inner = self.replay.lock();
        if inner.reader != self.turn {
            return Poll::Ready(None);
        }
        let next = inner.read + 1;
        let oldest = inner.events.front().map_or(next, |(number, _)| *number);
        if let Some((number, frame)) = inner.events.get(next.saturating_sub(oldest) as usize).cloned() {
            inner.read = number;
            wake(&mut inner.writer_waker);
            return Poll::Ready(Some((number, frame)));
        }
        if inner.ended.is_some() {
            return Poll::Ready(None);
        }
        inner.reader_waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Whether everything was read and nothing will follow.
    pub(crate) fn is_done(&self) -> bool {
        let inner = self.replay.lock();
        inner.ended.is_some() && inner.read == inner.newest
    }

    /// Which stream it is.
    pub(crate) fn stream(&self) -> u64 {
        self.replay.number
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut inner = self.replay.lock();
        if inner.reader == self.turn {
            inner.attached = false;
            inner.evict(self.replay.bytes_max);
            wake(&mut inner.writer_waker);
            wake(&mut inner.attached_waker);
        }
    }
}

fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(reader: &mut Reader) -> Vec<u64> {
        let cx = Context::from_waker(Waker::noop());
        std::iter::from_fn(|| match reader.poll_next(&cx) {
            Poll::Ready(Some((number, _))) => Some(number),
            _ => None,
        })
        .collect()
    }

    fn replay(frames: usize) -> Arc<Replay> {
        let replay = Replay::new(1, 10, &Budget::default());
        (0..frames).for_each(|_| replay.push(Bytes::from_static(b"1234")).unwrap());
        replay
    }

    #[test]
    fn each_event_is_read_once_and_on_the_newest_connection() {
        let replay = replay(1);
        let mut first = replay.attach(0).unwrap();
        assert_eq!(read(&mut first), [1]);
        replay.push(Bytes::from_static(b"1234")).unwrap();
        let mut second = replay.attach(1).unwrap();
        assert_eq!((read(&mut first), read(&mut second)), (vec![], vec![2]));
        assert_eq!(read(&mut replay.attach(0).unwrap()), [1, 2]);
    }

    #[test]
    fn streams_that_nobody_reads_give_way_and_what_was_read_is_not_asked_for_again() {
        let budget = Budget::new(16 << 20);
        let [read_on, left] = [1, 2].map(|number| Replay::new(number, 8 << 20, &budget));
        read_on.push(vec![b'x'; 2 << 20].into()).unwrap();
        left.push(vec![b'x'; 6 << 20].into()).unwrap();
        let mut reader = read_on.attach(0).unwrap();
        assert_eq!(read(&mut reader), [1]);
        let next = budget.charge(Kind::Answer, 6 << 20).unwrap();
        budget.wake_deferred();
        // The larger one is forgotten whole; the connection of the other goes on.
        assert!(left.attach(0).is_none() && left.ended().is_some());
        read_on.push(Bytes::from_static(b"1234")).unwrap();
        assert_eq!(read(&mut reader), [2]);
        drop((next, reader, read_on, left));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn streams_that_keep_little_are_counted_together_with_their_client() {
        let budget = Budget::new(64 << 20);
        let streams: Vec<_> = (1..=1_000).map(|number| Replay::new(number, 8 << 20, &budget)).collect();
        let kept = streams.iter().take_while(|replay| replay.push(vec![b'x'; 13 << 10].into()).is_ok()).count();
        assert!((500..600).contains(&kept), "as many as find room in the part of what is small: {kept}");
        assert_eq!(budget.used_by(Kind::Small), budget.used());
        drop(streams);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn small_events_are_counted_with_what_each_of_them_takes() {
        let budget = Budget::new(64 << 20);
        let replay = Replay::new(1, 8 << 20, &budget);
        (0..10_000).for_each(|_| replay.push(vec![b'x'; 90].into()).unwrap());
        let counted = budget.used_by(Kind::Replay);
        assert!((1_800_000..2_200_000).contains(&counted), "measured are 180 bytes for each of 90: {counted}");
        drop(replay);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn what_fell_out_is_a_gap_and_what_never_was_is_refused() {
        let replay = replay(4);
        assert!(replay.attach(0).is_none() && replay.attach(1).is_none() && replay.attach(5).is_none());
        assert_eq!(read(&mut replay.attach(2).unwrap()), [3, 4]);
        assert!(read(&mut replay.attach(4).unwrap()).is_empty());
    }

    #[test]
    fn an_attached_reader_holds_the_writer_up_and_loses_nothing() {
        let replay = replay(0);
        let mut reader = replay.attach(0).unwrap();
        (0..3).for_each(|_| replay.push(Bytes::from_static(b"1234")).unwrap());
        let cx = Context::from_waker(Waker::noop());
        assert!(replay.poll_room(&cx).is_pending());
        assert_eq!(read(&mut reader), [1, 2, 3]);
        assert!(replay.poll_room(&cx).is_ready());
        drop(reader);
        replay.push(Bytes::from_static(b"12345678901234")).unwrap();
        assert_eq!(replay.bytes(), 0);
    }
}
