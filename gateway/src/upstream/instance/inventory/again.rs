//! When lists that could not be read are asked for again: soon after a failure, ever later where there was no room for them.

use super::schedule::ListKinds;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// So soon the first time, and twice as late each time …
const MIN: Duration = Duration::from_secs(1);
/// … until it is this.
const MAX: Duration = Duration::from_secs(4);
/// A list that finds no room is as large the next time: to read it costs as much as it did, up to 64 MiB and their parsing.
const FULL_MAX: Duration = Duration::from_secs(300);

/// When which lists are asked for again.
#[derive(Debug)]
pub(super) struct Again {
    kinds: Option<ListKinds>,
    /// After the last read.
    pub(super) pause: Duration,
    at: Instant,
}

impl Default for Again {
    fn default() -> Self {
        Self { kinds: None, pause: MIN, at: Instant::now() }
    }
}

impl Again {
    /// These were read, and those could not be; whether that was for want of room alone.
    pub(super) fn read(&mut self, failing: Option<(ListKinds, bool)>, read: ListKinds) {
        let (kinds, is_full) = failing.unzip();
        let was_read = kinds.is_some_and(|kinds| kinds.shares(read));
        self.pause = match (self.kinds, is_full) {
            (Some(_), Some(is_full)) if was_read => (self.pause * 2).min(if is_full { FULL_MAX } else { MAX }),
            (Some(_), Some(_)) => self.pause,
            _ => MIN,
        };
        if was_read {
            self.at = Instant::now() + self.pause;
        }
        self.kinds = kinds;
    }

    /// Resolves when these are to be read again.
    pub(super) async fn due(&self) -> ListKinds {
        let Some(kinds) = self.kinds else { return std::future::pending().await };
        sleep_until(self.at).await;
        kinds
    }
}
