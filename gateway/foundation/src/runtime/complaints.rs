//! When each kind of complaint was last said, so that a flood of one kind is a line now and then.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How often one kind is said, where nothing else is asked for.
pub const SAID_EVERY: Duration = Duration::from_secs(10);

/// How many more there were, for a line of the log: nothing where there was none.
#[must_use]
pub fn left_unsaid(more: u64) -> Option<u64> {
    (more > 0).then_some(more)
}

/// When each kind was last said, and how many were not.
#[derive(Debug)]
pub struct Complaints {
    every: Duration,
    said: Mutex<HashMap<&'static str, (Option<Instant>, u64)>>,
}

impl Default for Complaints {
    fn default() -> Self {
        Self::every(SAID_EVERY)
    }
}

impl Complaints {
    /// Of which one kind is said so often at most.
    pub fn every(every: Duration) -> Self {
        Self { every, said: Mutex::default() }
    }

    /// How many were not said since the last one, where it is time for one.
    pub fn take(&self, kind: &'static str) -> Option<u64> {
        let now = Instant::now();
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, more) = said.entry(kind).or_default();
        if last.is_some_and(|last| now.duration_since(last) < self.every) {
            *more += 1;
            return None;
        }
        *last = Some(now);
        Some(std::mem::take(more))
    }
}
