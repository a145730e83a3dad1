//! How it went to open a session of a client's own.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// After so many attempts in a row that failed, or once one has lasted for so long, its client is served otherwise where that can be.
const FAILURES: u32 = 3;
const SLOW: Duration = Duration::from_secs(10);

/// How often in a row it could not be opened, and since when that is tried.
#[derive(Debug, Default)]
pub(crate) struct Tries(Mutex<(u32, Option<Instant>)>);

impl Tries {
    /// It is being opened.
    pub(crate) fn begin(&self) {
        self.lock().1 = Some(Instant::now());
    }

    /// It could not be opened.
    pub(crate) fn failed(&self) {
        let mut tries = self.lock();
        *tries = (tries.0.saturating_add(1), None);
    }

    /// It is open.
    pub(crate) fn succeeded(&self) {
        *self.lock() = (0, None);
    }

    /// Whether it could not be opened several times in a row, or is being opened for long.
    pub(crate) fn are_hopeless(&self) -> bool {
        let (failed, since) = *self.lock();
        failed >= FAILURES || since.is_some_and(|since| since.elapsed() >= SLOW)
    }

    fn lock(&self) -> MutexGuard<'_, (u32, Option<Instant>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
