//! How many calls are sent to an upstream a second time: a tenth of all, and a few. One that is sick does not get a double load.

use crate::call::share::{Rate, RateCell};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// What a retry takes, in parts of which each call brings one.
const RETRY: u32 = 10;
/// So much is saved up at most, and there at first: a retry for each of a thousand sessions with an upstream that was started again.
const SAVED_MAX: u32 = RETRY * 1024;
/// So many there may be in any case.
const FLOOR: Rate = Rate { count: 10, per: Duration::from_secs(1) };

/// The retries that there may be, of all instances of an upstream together.
pub(crate) struct RetryBudget {
    saved: AtomicU32,
    floor: RateCell,
}

impl Default for RetryBudget {
    fn default() -> Self {
        Self { saved: AtomicU32::new(SAVED_MAX), floor: RateCell::new(FLOOR) }
    }
}

impl RetryBudget {
    /// A call is sent for the first time.
    pub(crate) fn called(&self) {
        // While nothing is sent again nothing is written, and many at once may save a few too many.
        if self.saved.load(Ordering::Relaxed) < SAVED_MAX {
            self.saved.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Nothing is left for long.
    #[cfg(test)]
    pub(crate) fn spend(&self) {
        self.saved.store(0, Ordering::Relaxed);
        self.floor.owe(1_000_000);
    }

    /// Takes a retry, where there is one.
    pub(crate) fn take(&self) -> bool {
        let taken =
            self.saved.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |saved| saved.checked_sub(RETRY)).is_ok();
        taken || self.floor.take().is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn what_was_saved_goes_first_and_then_a_tenth_of_the_calls_and_a_few_a_second() {
        let budget = RetryBudget::default();
        (0..100_000).for_each(|_| budget.called());
        let taken = || (0..).take_while(|_| budget.take()).count();
        assert_eq!(taken(), 1024 + 10, "no more than that is saved");
        assert_eq!(taken(), 0);
        (0..1000).for_each(|_| budget.called());
        assert_eq!(taken(), 100);
        advance(Duration::from_secs(1)).await;
        assert_eq!(taken(), 10);
        advance(Duration::from_secs(3600)).await;
        assert_eq!(taken(), 10, "time saves nothing up");
    }
}
