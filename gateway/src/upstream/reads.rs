//! When the inventory is read again: at once when it is told to have changed, joined and slower when that does not end.

use super::fresh::Fresh;
use crate::protocol::Method;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// How long what comes after a first notice is joined.
const JOIN: Duration = Duration::from_millis(200);
/// The longest pause between reads that an upstream asks for without anything changing.
const JOIN_MAX: Duration = Duration::from_secs(5);
/// An inventory older than this is read again when somebody looks at it.
const STALE: Duration = Duration::from_secs(30);

/// Which lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Kinds(u8);

impl Kinds {
    pub(crate) const TOOLS: Self = Self(1);
    pub(crate) const RESOURCES: Self = Self(2);
    pub(crate) const PROMPTS: Self = Self(4);
    pub(crate) const ALL: Self = Self(7);

    /// Whether all of `other` are among these.
    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// What is to be read, and what was.
#[derive(Debug)]
pub(crate) struct Reads {
    dirty: AtomicU8,
    wake: Notify,
    /// Counts reads begun and ended: an odd number is a read under way.
    rounds: watch::Sender<u64>,
    read_at: Mutex<Option<Instant>>,
    /// Until when what was read holds.
    pub(crate) fresh: Arc<Fresh>,
    /// The lists that could not be read the last time, each by its method: what it belongs to, and why.
    failed: Mutex<BTreeMap<&'static str, (Kinds, String)>>,
}

impl Default for Reads {
    fn default() -> Self {
        Self {
            dirty: AtomicU8::new(0),
            wake: Notify::new(),
            rounds: watch::Sender::new(0),
            read_at: Mutex::default(),
            fresh: Arc::default(),
            failed: Mutex::default(),
        }
    }
}

impl Reads {
    /// The upstream says that these have changed.
    pub(crate) fn changed(&self, kinds: Kinds) {
        for (kind, list) in [
            (Kinds::TOOLS, Method::ToolsList),
            (Kinds::PROMPTS, Method::PromptsList),
            (Kinds::RESOURCES, Method::ResourcesList),
            (Kinds::RESOURCES, Method::TemplatesList),
        ] {
            if kinds.has(kind) {
                self.fresh.read(&list, None);
            }
        }
        self.mark(kinds);
    }

    /// These are to be read again.
    pub(crate) fn mark(&self, kinds: Kinds) {
        self.dirty.fetch_or(kinds.0, Ordering::Release);
        self.wake.notify_one();
    }

    /// All are to be read again, where the last time is long ago.
    pub(crate) fn refresh(&self) {
        let mut read_at = self.read_at.lock().unwrap_or_else(PoisonError::into_inner);
        if read_at.is_some_and(|at| at.elapsed() >= STALE) {
            // One look is enough to have it read; the time is set when it was.
            *read_at = None;
            drop(read_at);
            self.mark(Kinds::ALL);
        }
    }

    /// Has these read again, and waits until a read that began after now has ended.
    pub(crate) async fn again(&self, kinds: Kinds) {
        let mut rounds = self.rounds.subscribe();
        let now = *rounds.borrow_and_update();
        self.mark(kinds);
        let enough = now + if now % 2 == 1 { 3 } else { 2 };
        let _ = rounds.wait_for(|round| *round >= enough).await;
    }

    /// A read begins: what is to be read.
    pub(crate) fn begin(&self) -> Kinds {
        self.rounds.send_modify(|round| *round += if *round % 2 == 0 { 1 } else { 2 });
        Kinds(self.dirty.swap(0, Ordering::Acquire))
    }

    /// A read has ended.
    pub(crate) fn end(&self) {
        *self.read_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        self.rounds.send_modify(|round| *round += *round % 2);
    }

    /// A list was read, or could not be, and why; says whether that is news.
    pub(crate) fn took(&self, list: &'static str, kinds: Kinds, why: Option<String>) -> bool {
        let mut failed = self.failed();
        let is_news = failed.get(list).map(|(_, why)| why) != why.as_ref();
        match why {
            Some(why) => _ = failed.insert(list, (kinds, why)),
            None => _ = failed.remove(list),
        }
        is_news
    }

    /// Whether every list was read to its end the last time: what is known is what there is.
    pub(crate) fn are_whole(&self) -> bool {
        self.failed().is_empty()
    }

    /// What could not be read the last time, and why.
    pub(crate) fn failing(&self) -> Option<(Kinds, String)> {
        let failed = self.failed();
        let kinds = failed.values().fold(0, |all, (kinds, _)| all | kinds.0);
        let why: Vec<_> = failed.iter().map(|(list, (_, why))| format!("`{list}` could not be read ({why})")).collect();
        (!why.is_empty()).then(|| (Kinds(kinds), why.join(", ")))
    }

    fn failed(&self) -> MutexGuard<'_, BTreeMap<&'static str, (Kinds, String)>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves when something is to be read; `pace` says how soon after the last read that may be.
    pub(crate) async fn due(&self, pace: &Pace) {
        while self.dirty.load(Ordering::Acquire) == 0 {
            self.wake.notified().await;
        }
        tokio::time::sleep_until(pace.next).await;
    }
}

/// How soon a next read may follow: an upstream that announces what did not change is read ever more slowly.
#[derive(Debug)]
pub(crate) struct Pace {
    gap: Duration,
    next: Instant,
}

impl Pace {
    pub(crate) fn new(now: Instant) -> Self {
        Self { gap: JOIN, next: now }
    }

    /// A read has ended.
    pub(crate) fn read(&mut self, now: Instant, has_changed: bool) {
        let was_quiet = now.saturating_duration_since(self.next) >= JOIN_MAX;
        self.gap = if has_changed || was_quiet { JOIN } else { (self.gap * 2).min(JOIN_MAX) };
        self.next = now + self.gap;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_two_reads_and_a_loop_is_slowed() {
        let reads = Arc::new(Reads::default());
        let mut pace = Pace::new(Instant::now() - JOIN);
        let begun = Instant::now();
        let mut count = 0;
        // Every read is answered by another notice, and nothing ever changes.
        reads.mark(Kinds::TOOLS);
        while begun.elapsed() < Duration::from_secs(60) {
            reads.due(&pace).await;
            assert_eq!(reads.begin(), Kinds::TOOLS);
            (0..100).for_each(|_| reads.mark(Kinds::TOOLS));
            reads.end();
            pace.read(Instant::now(), false);
            count += 1;
        }
        assert!(count <= 30, "{count}");
        assert_eq!(begun.elapsed().as_secs() / 5, 12);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_a_read_waits_for_one_that_begins_later() {
        let reads = Arc::new(Reads::default());
        reads.begin();
        let waiting = reads.clone();
        let mut again = std::pin::pin!(async move { waiting.again(Kinds::TOOLS).await });
        assert!(tokio::time::timeout(JOIN, &mut again).await.is_err());
        reads.end();
        assert!(tokio::time::timeout(JOIN, &mut again).await.is_err());
        assert_eq!(reads.begin(), Kinds::TOOLS);
        reads.end();
        again.await;
    }
}
