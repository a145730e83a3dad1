//! How often a call's progress is told: at most twenty times in any second, the last of it always.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// So much may be told in a row.
const IN_A_ROW: u32 = 8;
/// And one more each time that so much has passed.
const EVERY: Duration = Duration::from_nanos(1_000_000_000 / 12);

/// The pace of one call's progress.
#[derive(Debug, Default)]
pub struct ProgressRate {
    /// When all that was told will have been made up for.
    even_at: Option<Instant>,
    /// Made when there is first something to wait for.
    rest: Option<Pin<Box<Sleep>>>,
}

impl ProgressRate {
    /// Of a call of which so much was told just now as may be.
    pub fn spent() -> Self {
        Self { even_at: Some(Instant::now() + EVERY * IN_A_ROW), rest: None }
    }

    /// Whether one more than `waiting` can be told now.
    pub fn admits(&self, waiting: usize) -> bool {
        let Some(even_at) = self.even_at else { return waiting < IN_A_ROW as usize };
        let waiting = u32::try_from(waiting).unwrap_or(u32::MAX);
        let ahead = even_at.saturating_duration_since(Instant::now());
        ahead + EVERY * waiting <= EVERY * (IN_A_ROW - 1)
    }

    /// One is told.
    pub fn told(&mut self) {
        let now = Instant::now();
        self.even_at = Some(self.even_at.map_or(now, |even_at| even_at.max(now)) + EVERY);
    }

    /// Has whoever asks woken when the next can be told.
    pub fn poll(&mut self, cx: &mut Context<'_>) {
        let Some(even_at) = self.even_at else { return };
        let due = even_at - EVERY * (IN_A_ROW - 1);
        let rest = self.rest.get_or_insert_with(|| Box::pin(sleep_until(due)));
        if rest.deadline() != due {
            rest.as_mut().reset(due);
        }
        if let Poll::Ready(()) = rest.as_mut().poll(cx) {
            // It is time by now.
            cx.waker().wake_by_ref();
        }
    }
}
