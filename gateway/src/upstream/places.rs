//! How many calls one upstream may have at once: a call's place is its own from when it is sent to its end, but for the time in which
//! a person is asked.

use crate::call::Call;
use crate::lifecycle::Traffic;
use crate::protocol::Method;
use crate::signals;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;

/// The places of one upstream.
pub(crate) struct Places {
    /// So many there are; `None`: as many as are wanted.
    most: Option<usize>,
    taken: AtomicUsize,
    /// Counts the calls that wait.
    traffic: Arc<Traffic>,
    /// The same for the metrics, where they are calls of their own.
    metrics: Option<signals::Upstream>,
    freed: Notify,
}

impl Places {
    pub(crate) fn new(most: Option<usize>, traffic: Arc<Traffic>, metrics: &signals::Upstream) -> Arc<Self> {
        Arc::new(Self {
            most,
            taken: AtomicUsize::new(0),
            traffic,
            metrics: Some(metrics.clone()),
            freed: Notify::new(),
        })
    }

    /// As many as are wanted: who comes here has a place already, where one is needed.
    pub(crate) fn enough() -> Arc<Self> {
        let (traffic, freed) = (Arc::default(), Notify::new());
        Arc::new(Self { most: None, taken: AtomicUsize::new(0), traffic, metrics: None, freed })
    }

    /// So many there are.
    pub(crate) fn most(&self) -> Option<usize> {
        self.most
    }

    /// Whether a call needs one. What tells of a task, ends it or goes on with it must not wait behind others.
    pub(crate) fn are_for(&self, call: &Call) -> bool {
        self.most.is_some()
            && matches!(call.method, Method::ToolsCall | Method::PromptsGet | Method::ResourcesRead | Method::Complete)
    }

    /// A place, where one is free.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Place> {
        let most = self.most?;
        let more = |taken: usize| (taken < most).then_some(taken + 1);
        let taken = self.taken.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more);
        taken.is_ok().then(|| Place { of: self.clone(), is_held: true })
    }

    /// Whether nobody waits: who does must not be overtaken.
    pub(crate) fn is_quiet(&self) -> bool {
        self.traffic.queued() == 0
    }

    /// So many calls wait now. Said before a place is looked for in vain: whoever frees one then sees it.
    pub(crate) fn wait(&self, count: usize) {
        let before = self.traffic.queue(count);
        if let Some(metrics) = self.metrics.as_ref().filter(|_| before != count) {
            metrics.queued.increment(count as f64 - before as f64);
        }
    }

    /// A call is refused: too many wait.
    pub(crate) fn refused(&self) {
        self.metrics.iter().for_each(|metrics| metrics.busy.increment(1));
    }

    /// Resolves when a place has become free while somebody waited.
    pub(crate) async fn freed(&self) {
        self.freed.notified().await;
    }

    fn free(&self) {
        self.taken.fetch_sub(1, Ordering::SeqCst);
        if !self.is_quiet() {
            self.freed.notify_one();
        }
    }
}

impl std::fmt::Debug for Places {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Places").field("most", &self.most).field("taken", &self.taken).finish_non_exhaustive()
    }
}

/// The place of one call; dropped, it is free.
#[derive(Debug)]
pub(crate) struct Place {
    of: Arc<Places>,
    is_held: bool,
}

impl Place {
    /// Gives it up for a while.
    pub(crate) fn lend(&mut self) {
        if std::mem::take(&mut self.is_held) {
            self.of.free();
        }
    }

    /// Takes one again without waiting, even where there is none left: new calls wait the longer.
    pub(crate) fn resume(&mut self) {
        if !std::mem::replace(&mut self.is_held, true) {
            self.of.taken.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.lend();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_lent_taken_again_without_waiting_and_free_at_its_end() {
        let places = Places::new(Some(1), Arc::default(), &signals::upstream("a"));
        let mut first = places.take().unwrap();
        assert!(places.take().is_none());
        first.lend();
        first.lend();
        let second = places.take().unwrap();
        first.resume();
        assert!(places.take().is_none());
        drop(second);
        assert!(places.take().is_none(), "the first has taken its own again");
        drop(first);
        assert!(places.take().is_some());
        assert!(Places::enough().take().is_none());
    }
}
