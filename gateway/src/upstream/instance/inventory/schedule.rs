//! When the inventory is read again: at once when it is told to have changed, joined and slower when that does not end.

use super::freshness::Fresh;
use crate::health::{Cause, CauseCode};
use crate::protocol::frame::Method;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// How long what comes after a notice is joined.
const JOIN: Duration = Duration::from_millis(250);
/// After so many reads in a row, what is told does not end by itself soon …
const IN_A_ROW: u32 = 6;
/// … and is joined for so long, until none was asked for as long.
const JOIN_BUSY: Duration = Duration::from_secs(2);
/// The longest pause between reads that an upstream asks for without anything changing.
const JOIN_MAX: Duration = Duration::from_secs(5);
/// An inventory older than this is read again when somebody looks at it.
const STALE: Duration = Duration::from_secs(30);

/// Which lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ListKinds(u8);

impl ListKinds {
    pub(crate) const TOOLS: Self = Self(1);
    pub(crate) const RESOURCES: Self = Self(2);
    pub(crate) const PROMPTS: Self = Self(4);
    pub(crate) const ALL: Self = Self(7);

    /// Whether these are none.
    pub(crate) fn are_none(self) -> bool {
        self.0 == 0
    }

    /// Whether all of `other` are among these.
    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any of `other` is among these.
    pub(crate) fn shares(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// What is to be read, and what was.
#[derive(Debug)]
pub(crate) struct ReadSchedule {
    dirty: AtomicU8,
    /// What the upstream itself has said to have changed, since it was last passed on.
    announced: AtomicU8,
    wake: Notify,
    /// Counts reads begun and ended: an odd number is a read under way.
    rounds: watch::Sender<u64>,
    read_at: Mutex<Option<Instant>>,
    /// Until when what was read holds.
    pub(crate) fresh: Arc<Fresh>,
    /// The lists that were asked for and have not come, by their methods.
    pending: Mutex<BTreeSet<&'static str>>,
    /// The lists that could not be read the last time, each by its method: what it belongs to, and why.
    failed: Mutex<BTreeMap<&'static str, (ListKinds, Cause)>>,
}

impl Default for ReadSchedule {
    fn default() -> Self {
        Self {
            dirty: AtomicU8::new(0),
            announced: AtomicU8::new(0),
            wake: Notify::new(),
            rounds: watch::Sender::new(0),
            read_at: Mutex::default(),
            fresh: Arc::default(),
            pending: Mutex::default(),
            failed: Mutex::default(),
        }
    }
}

impl ReadSchedule {
    /// The upstream says that these have changed: its word counts, also where nothing else is read than before.
    pub(crate) fn announced(&self, kinds: ListKinds) {
        self.announced.fetch_or(kinds.0, Ordering::Release);
        self.changed(kinds);
    }

    /// What the upstream has said to have changed. Asked once a read has begun, which finds what was said by then.
    pub(crate) fn take_announced(&self) -> ListKinds {
        ListKinds(self.announced.swap(0, Ordering::Acquire))
    }

    /// Resolves when the upstream has said that something has changed.
    pub(crate) async fn is_announced(&self) {
        while self.announced.load(Ordering::Acquire) == 0 {
            self.wake.notified().await;
        }
    }

    /// These may have changed.
    pub(crate) fn changed(&self, kinds: ListKinds) {
        for (kind, list) in [
            (ListKinds::TOOLS, Method::ToolsList),
            (ListKinds::PROMPTS, Method::PromptsList),
            (ListKinds::RESOURCES, Method::ResourcesList),
            (ListKinds::RESOURCES, Method::TemplatesList),
        ] {
            if kinds.has(kind) {
                self.fresh.read(&list, None);
            }
        }
        self.mark(kinds);
    }

    /// These are to be read again.
    pub(crate) fn mark(&self, kinds: ListKinds) {
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
            self.mark(ListKinds::ALL);
        }
    }

    /// Has these read again, and waits until a read that began after now has ended.
    pub(crate) async fn again(&self, kinds: ListKinds) {
        let mut rounds = self.rounds.subscribe();
        let now = *rounds.borrow_and_update();
        self.mark(kinds);
        let enough = now + if now % 2 == 1 { 3 } else { 2 };
        let _ = rounds.wait_for(|round| *round >= enough).await;
    }

    /// A read begins: what is to be read.
    pub(crate) fn begin(&self) -> ListKinds {
        self.rounds.send_modify(|round| *round += if *round % 2 == 0 { 1 } else { 2 });
        ListKinds(self.dirty.swap(0, Ordering::Acquire))
    }

    /// A read has ended.
    pub(crate) fn end(&self) {
        *self.read_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        self.rounds.send_modify(|round| *round += *round % 2);
    }

    /// Whether a read has ended, ever.
    pub(crate) fn were_read(&self) -> bool {
        *self.rounds.borrow() >= 2
    }

    /// A list is asked for.
    pub(crate) fn asks(&self, list: &'static str) {
        self.pending().insert(list);
    }

    /// The lists that were asked for and have not come, in words.
    pub(crate) fn awaited(&self) -> String {
        self.pending().iter().map(|list| format!("`{list}`")).collect::<Vec<_>>().join(", ")
    }

    fn pending(&self) -> MutexGuard<'_, BTreeSet<&'static str>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A list was read, or could not be, and why; says whether that is news.
    pub(crate) fn took(&self, list: &'static str, kinds: ListKinds, why: Option<Cause>) -> bool {
        self.pending().remove(list);
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
    pub(crate) fn failing(&self) -> Option<Failing> {
        let failed = self.failed();
        let kinds = ListKinds(failed.values().fold(0, |all, (kinds, _)| all | kinds.0));
        let is_full = failed.values().all(|(_, why)| why.code() == CauseCode::MemoryFull);
        let told = failed.iter().map(|(list, (_, why))| unreadable(list).then(why).own(")"));
        let why = told.reduce(|before, next| before.own(", ").then(&next))?;
        Some(Failing { kinds, why, is_full })
    }

    fn failed(&self) -> MutexGuard<'_, BTreeMap<&'static str, (ListKinds, Cause)>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves when something is to be read; `pace` says how soon after the last read that may be.
    pub(crate) async fn due(&self, pace: &ReadPace) {
        while self.dirty.load(Ordering::Acquire) == 0 {
            self.wake.notified().await;
        }
        tokio::time::sleep_until(pace.next).await;
    }
}

fn unreadable(list: &str) -> Cause {
    Cause::new(CauseCode::ListUnreadable, format!("`{list}` could not be read ("))
}

/// What could not be read the last time.
pub(crate) struct Failing {
    pub(crate) kinds: ListKinds,
    pub(crate) why: Cause,
    /// There was no room for any of it, and nothing else is wrong.
    pub(crate) is_full: bool,
}

/// How soon a next read may follow: an upstream that announces what did not change is read ever more slowly.
#[derive(Debug)]
pub(crate) struct ReadPace {
    /// After the last read.
    gap: Duration,
    /// How many reads there were in a row.
    in_a_row: u32,
    next: Instant,
}

impl ReadPace {
    pub(crate) fn new(now: Instant) -> Self {
        Self { gap: JOIN, in_a_row: 0, next: now }
    }

    /// A read has ended.
    pub(crate) fn read(&mut self, now: Instant, has_changed: bool) {
        let quiet = now.saturating_duration_since(self.next);
        let was_quiet = quiet >= JOIN_MAX || (has_changed && quiet >= JOIN_BUSY);
        self.in_a_row = if was_quiet { 1 } else { self.in_a_row + 1 };
        self.gap = match (has_changed, self.in_a_row) {
            (_, 1) => JOIN,
            (true, ..=IN_A_ROW) => JOIN,
            (true, _) => JOIN_BUSY,
            (false, _) => (self.gap * 2).clamp(JOIN_BUSY, JOIN_MAX),
        };
        self.next = now + self.gap;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_two_reads_and_a_loop_is_slowed() {
        let reads = Arc::new(ReadSchedule::default());
        let mut pace = ReadPace::new(Instant::now() - JOIN);
        let begun = Instant::now();
        let mut count = 0;
        // Every read is answered by another notice, and nothing ever changes.
        reads.mark(ListKinds::TOOLS);
        while begun.elapsed() < Duration::from_secs(60) {
            reads.due(&pace).await;
            assert_eq!(reads.begin(), ListKinds::TOOLS);
            (0..100).for_each(|_| reads.mark(ListKinds::TOOLS));
            reads.end();
            pace.read(Instant::now(), false);
            count += 1;
        }
        assert!(count <= 30, "{count}");
        assert_eq!(begun.elapsed().as_secs() / 5, 12);
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_goes_on_changing_is_read_each_quarter_of_a_second_and_then_every_two_seconds() {
        let (begun, mut pace) = (Instant::now(), ReadPace::new(Instant::now()));
        let mut read = |at: u64| {
            pace.read(begun + Duration::from_millis(at), true);
            pace.next.duration_since(begun).as_millis()
        };
        let soon = [0, 250, 500, 750, 1_000, 1_250].map(|at| read(at) - u128::from(at));
        assert_eq!(soon, [250; IN_A_ROW as usize]);
        assert_eq!([read(1_500), read(3_500), read(5_500)], [3_500, 5_500, 7_500]);
        assert_eq!([read(9_499), read(13_499)], [11_499, 13_749], "it was quiet for two seconds");
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_a_read_waits_for_one_that_begins_later() {
        let reads = Arc::new(ReadSchedule::default());
        reads.begin();
        let waiting = reads.clone();
        let mut again = std::pin::pin!(async move { waiting.again(ListKinds::TOOLS).await });
        assert!(tokio::time::timeout(JOIN, &mut again).await.is_err());
        reads.end();
        assert!(tokio::time::timeout(JOIN, &mut again).await.is_err());
        assert_eq!(reads.begin(), ListKinds::TOOLS);
        reads.end();
        again.await;
    }
}
