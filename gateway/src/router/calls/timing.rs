//! How long an upstream had a call whose reply another reply is read through, and how long it waited for that.

use crate::call::reply::{Ending, Guard, Reply};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Knows both once the watched reply has ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stopwatch(Arc<[AtomicU64; 2]>);

impl Stopwatch {
    /// Watches a reply.
    pub(crate) fn on(reply: Reply) -> (Reply, Self) {
        let watch = Self::default();
        (reply.attach(Box::new(watch.clone())), watch)
    }

    /// The upstream's time.
    pub(crate) fn time(&self) -> Duration {
        Duration::from_nanos(self.0[0].load(Ordering::Relaxed))
    }

    /// The time before that, in which it waited.
    pub(crate) fn queued(&self) -> Duration {
        Duration::from_nanos(self.0[1].load(Ordering::Relaxed))
    }
}

impl Guard for Stopwatch {
    fn done(&mut self, ending: &Ending<'_>) {
        for (kept, time) in self.0.iter().zip([ending.upstream_time, ending.queue_time]) {
            kept.store(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    }
}
