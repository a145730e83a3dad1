//! How many lines of stderr are logged: one share for each upstream, for all its children and across restarts.

use crate::metrics;
use ::metrics::Counter;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// How many lines are logged in [`WINDOW`], with the one that counts what was not logged in the window before.
const LINES: u32 = 20;
const WINDOW: Duration = Duration::from_secs(10);

/// The share of one upstream. Cheap to clone; clones are the same.
#[derive(Clone)]
pub struct StderrLog(Arc<Share>);

struct Share {
    upstream: Arc<str>,
    /// Counts every line.
    lines: Counter,
    window: Mutex<Window>,
    /// Told when a line is kept back and none was before.
    kept_back: Notify,
}

#[derive(Default)]
struct Window {
    since: Option<Instant>,
    logged: u32,
    kept_back: u64,
}

impl Window {
    fn end(&self) -> Option<Instant> {
        self.since.and_then(|since| since.checked_add(WINDOW))
    }

    /// Begins the next window where this one is over. Returns how many lines were kept back: a line of the log tells of them.
    fn pass(&mut self, now: Instant) -> u64 {
        if self.end().is_some_and(|end| now < end) {
            return 0;
        }
        let kept_back = std::mem::take(&mut self.kept_back);
        *self = Self { since: Some(now), logged: u32::from(kept_back > 0), kept_back: 0 };
        kept_back
    }

    /// Whether a line may be logged; if not, it is kept back.
    fn take(&mut self) -> bool {
        let may = self.logged < LINES;
        match may {
            true => self.logged += 1,
            false => self.kept_back += 1,
        }
        may
    }
}

impl StderrLog {
    /// The share of this upstream, whose lines are counted here.
    pub(crate) fn new(upstream: &Arc<str>, lines: Counter) -> Self {
        let (window, kept_back) = Default::default();
        Self(Arc::new(Share { upstream: upstream.clone(), lines, window, kept_back }))
    }

    /// So many lines were read.
    pub(super) fn count(&self, lines: u64) {
        self.0.lines.increment(lines);
    }

    /// Logs a line, where the share is not used up.
    pub(super) fn line(&self, text: &str) {
        let (before, may) = self.change(Window::take);
        self.tell(before);
        if may {
            let upstream = &*self.0.upstream;
            tracing::info!(target: metrics::CHILD_STDERR, upstream, stream = "stderr", "{text}");
        }
    }

    /// So many lines of a flood were not even looked at.
    pub(super) fn keep_back(&self, lines: u64) {
        let (before, ()) = self.change(|window| window.kept_back += lines);
        self.tell(before);
    }

    /// Tells at the end of each window how many lines were not logged, whether or not more of them come. Runs once for each upstream.
    pub async fn report(&self) {
        loop {
            let due = { Some(self.lock()).filter(|window| window.kept_back > 0).and_then(|window| window.end()) };
            let Some(due) = due else {
                self.0.kept_back.notified().await;
                continue;
            };
            sleep_until(due).await;
            self.tell(self.change(|_| ()).0);
        }
    }

    /// Tells what is left to tell, where no more lines come.
    pub fn finish(&self) {
        let kept_back = std::mem::take(&mut self.lock().kept_back);
        self.tell(kept_back);
    }

    /// Changes the window that there is now. Returns what the one before has kept back.
    fn change<T>(&self, change: impl FnOnce(&mut Window) -> T) -> (u64, T) {
        let mut window = self.lock();
        let before = window.pass(Instant::now());
        let was_empty = window.kept_back == 0;
        let changed = change(&mut window);
        if was_empty && window.kept_back > 0 {
            self.0.kept_back.notify_one();
        }
        (before, changed)
    }

    /// Whether both are of one upstream.
    #[cfg(feature = "test-support")]
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn tell(&self, lines: u64) {
        if lines > 0 {
            let upstream = &*self.0.upstream;
            tracing::info!(target: metrics::CHILD_STDERR, upstream, stream = "stderr", "{lines} more stderr lines not shown");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Window> {
        self.0.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[path = "stderr_log/tests.rs"]
mod tests;
