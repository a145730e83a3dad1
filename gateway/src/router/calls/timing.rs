//! How long an upstream had a call whose reply another reply is read through.

use crate::call::reply::{Ending, Guard, Reply};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Knows the upstream's time once the watched reply has ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stopwatch(Arc<AtomicU64>);

impl Stopwatch {
    /// Watches a reply.
    pub(crate) fn on(reply: Reply) -> (Reply, Self) {
        let watch = Self::default();
        (reply.attach(Box::new(watch.clone())), watch)
    }

    /// The upstream's time.
    pub(crate) fn time(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

impl Guard for Stopwatch {
    fn done(&mut self, ending: &Ending<'_>) {
        let nanos = u64::try_from(ending.upstream_time.as_nanos()).unwrap_or(u64::MAX);
        self.0.store(nanos, Ordering::Relaxed);
    }
}
