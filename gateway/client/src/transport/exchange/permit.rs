//! How many calls one upstream may have at once: a call's place is its own from when it is sent to its end, but for the time in which
//! a person is asked.

use crate::call::Call;
use crate::call::share::{Share, Tally};
use crate::health::Traffic;
use crate::metrics;
use crate::protocol::frame::Method;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The places of one upstream, as one of its instances has them.
pub struct ConcurrencyLimit {
    /// So many there are; `None`: as many as are wanted.
    most: Option<usize>,
    /// Shared with the instance of the other era.
    both: Arc<Both>,
    /// Which of both it is.
    side: usize,
    /// Counts the calls that wait here.
    traffic: Arc<Traffic>,
    /// The same for the metrics, where they are calls of their own.
    metrics: Option<metrics::Upstream>,
}

/// What the instances of both eras share.
#[derive(Default)]
struct Both {
    held: Mutex<Held>,
    /// The calls that wait for either.
    waiting: AtomicUsize,
    /// Told of a free place, each side by itself.
    freed: [Notify; 2],
}

/// The permits that calls hold, counted by share.
#[derive(Debug, Default)]
struct Held {
    all: usize,
    by: Tally,
}

impl ConcurrencyLimit {
    /// Creates the limit of an upstream, with its metrics.
    pub fn new(most: Option<usize>, traffic: Arc<Traffic>, metrics: &metrics::Upstream) -> Arc<Self> {
        Arc::new(Self { most, both: Arc::default(), side: 0, traffic, metrics: Some(metrics.clone()) })
    }

    /// The same places for the instance of the other era, whose waiting calls are counted in this traffic.
    pub fn beside(&self, traffic: Arc<Traffic>) -> Arc<Self> {
        let (most, both, metrics) = (self.most, self.both.clone(), self.metrics.clone());
        Arc::new(Self { most, both, side: 1, traffic, metrics })
    }

    /// As many as are wanted: who comes here has a place already, where one is needed.
    pub fn enough() -> Arc<Self> {
        Arc::new(Self { most: None, both: Arc::default(), side: 0, traffic: Arc::default(), metrics: None })
    }

    /// So many there are.
    pub fn most(&self) -> Option<usize> {
        self.most
    }

    /// Whether a call needs one. What tells of a task, ends it or goes on with it must not wait behind others.
    pub fn are_for(&self, call: &Call) -> bool {
        self.most.is_some()
            && matches!(call.method, Method::ToolsCall | Method::PromptsGet | Method::ResourcesRead | Method::Complete)
    }

    /// A place for a call of this share, where one is free.
    pub fn take(self: &Arc<Self>, share: &Share) -> Option<Permit> {
        let most = self.most?;
        let mut held = self.lock();
        if held.all >= most {
            return None;
        }
        held.add(share);
        Some(Permit { of: self.clone(), share: share.clone(), is_held: true })
    }

    /// How many places the calls of a share have.
    pub fn held_by(&self, share: &Share) -> usize {
        if self.most.is_none() { 0 } else { self.lock().by.of(share) }
    }

    /// Whether nobody waits: who does must not be overtaken.
    pub fn is_quiet(&self) -> bool {
        self.both.waiting.load(Ordering::Acquire) == 0
    }

    /// So many calls wait now. Said before a place is looked for in vain: whoever frees one then sees it.
    pub fn wait(&self, count: usize) {
        let before = self.traffic.queue(count);
        // Wraps where it becomes less: the sum is right.
        self.both.waiting.fetch_add(count.wrapping_sub(before), Ordering::AcqRel);
        if let Some(metrics) = self.metrics.as_ref().filter(|_| before != count) {
            metrics.queued.increment(count as f64 - before as f64);
        }
    }

    /// A call is refused: too many wait.
    pub fn refused(&self) {
        self.metrics.iter().for_each(|metrics| metrics.busy.increment(1));
    }

    /// Resolves when a place has become free while somebody waited.
    pub async fn freed(&self) {
        self.both.freed[self.side].notified().await;
    }

    fn free(&self, share: &Share) {
        let mut held = self.lock();
        held.all -= 1;
        held.by.remove(share);
        drop(held);
        if !self.is_quiet() {
            self.both.freed.iter().for_each(Notify::notify_one);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.both.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn add(&mut self, share: &Share) {
        self.all += 1;
        self.by.add(share);
    }
}

impl std::fmt::Debug for ConcurrencyLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConcurrencyLimit")
            .field("most", &self.most)
            .field("held", &self.lock().all)
            .finish_non_exhaustive()
    }
}

/// The place of one call; dropped, it is free.
#[derive(Debug)]
pub struct Permit {
    of: Arc<ConcurrencyLimit>,
    share: Share,
    is_held: bool,
}

impl Permit {
    /// Gives it up for a while.
    pub(crate) fn lend(&mut self) {
        if std::mem::take(&mut self.is_held) {
            self.of.free(&self.share);
        }
    }

    /// Takes one again without waiting, even where there is none left: new calls wait the longer.
    pub(crate) fn resume(&mut self) {
        if !std::mem::replace(&mut self.is_held, true) {
            self.of.lock().add(&self.share);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.lend();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_lent_taken_again_without_waiting_and_free_at_its_end() {
        let share = Share::Unknown;
        let places = ConcurrencyLimit::new(Some(1), Arc::default(), &crate::metrics::upstream("a"));
        let mut first = places.take(&share).unwrap();
        assert!(places.take(&share).is_none());
        assert_eq!(places.held_by(&share), 1);
        first.lend();
        first.lend();
        assert_eq!(places.held_by(&share), 0);
        let second = places.take(&share).unwrap();
        first.resume();
        assert!(places.take(&share).is_none());
        drop(second);
        assert!(places.take(&share).is_none(), "the first has taken its own again");
        drop(first);
        assert!(places.take(&share).is_some());
        assert!(ConcurrencyLimit::enough().take(&share).is_none());
    }

    #[tokio::test]
    async fn both_eras_share_their_places_and_hear_of_free_ones() {
        let share = Share::Unknown;
        let one = ConcurrencyLimit::new(Some(1), Arc::default(), &crate::metrics::upstream("a"));
        let other = one.beside(Arc::default());
        let held = one.take(&share).unwrap();
        assert!(other.take(&share).is_none());
        other.wait(2);
        assert!(!one.is_quiet(), "a call of the other era waits: it must not be overtaken");
        one.wait(1);
        drop(held);
        tokio::join!(one.freed(), other.freed());
        other.wait(0);
        assert!(!other.is_quiet());
        one.wait(0);
        assert!(other.is_quiet() && other.take(&share).is_some());
    }
}
