//! When an upstream is started again: jittered delays that double, and a budget. Pure: the time is handed in.

use super::config::Restart;
pub(crate) use crate::transport::jitter::random;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Delays between starts.
#[derive(Debug)]
pub(crate) struct Backoff {
    plan: Restart,
    /// Whether starts are spawns, which have a budget; dialling has none.
    spawns: bool,
    failures: u32,
    starts: Starts,
}

/// The last starts that count, which the instances of both eras have in common. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Starts(Arc<Mutex<VecDeque<Instant>>>);

/// What comes after an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Again after this long.
    Soon(Duration),
    /// The budget is spent: the upstream has failed, and is looked at again after this long.
    Slowly(Duration),
}

impl Backoff {
    pub(crate) fn new(plan: Restart, spawns: bool, starts: Starts) -> Self {
        Self { plan, spawns, failures: 0, starts }
    }

    /// A start that counts.
    pub(crate) fn started(&mut self, now: Instant) {
        self.recent(now).push_back(now);
    }

    /// When to start again after an end; `up` is how long it was well, `random` lies in 0..1.
    pub(crate) fn next(&mut self, now: Instant, up: Option<Duration>, random: f64) -> Next {
        if up.is_some_and(|up| up >= self.plan.healthy_after) {
            self.failures = 0;
        }
        self.failures = self.failures.saturating_add(1);
        let spent = self.failures >= self.plan.max_restarts.max(1)
            || self.recent(now).len() >= self.plan.max_restarts.max(1) as usize;
        if self.spawns && spent {
            return Next::Slowly(self.plan.window);
        }
        let ceiling = self.plan.backoff_min.saturating_mul(1 << (self.failures - 1).min(20)).min(self.plan.backoff_max);
        Next::Soon(ceiling.mul_f64(0.5 + random.clamp(0.0, 1.0) / 2.0))
    }

    /// When to look again at what cannot be started as it is.
    pub(crate) fn hopeless(&self) -> Duration {
        self.plan.window
    }

    /// The starts that still count.
    fn recent(&self, now: Instant) -> MutexGuard<'_, VecDeque<Instant>> {
        let mut starts = self.starts.0.lock().unwrap_or_else(PoisonError::into_inner);
        while starts.front().is_some_and(|start| now.duration_since(*start) >= self.plan.window) {
            starts.pop_front();
        }
        starts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Starts that fail at once, over a time: when they happen.
    fn starts(spawns: bool, minutes: u64, random: impl Fn() -> f64) -> Vec<Duration> {
        let begun = Instant::now();
        let mut backoff = Backoff::new(Restart::default(), spawns, Starts::default());
        let (mut now, mut seen) = (begun, Vec::new());
        while now - begun < Duration::from_secs(60 * minutes) {
            seen.push(now - begun);
            backoff.started(now);
            now += match backoff.next(now, None, random()) {
                Next::Soon(delay) | Next::Slowly(delay) => delay,
            };
        }
        seen
    }

    #[test]
    fn delays_double_to_the_longest_and_start_anew_after_health() {
        let now = Instant::now();
        let mut backoff = Backoff::new(Restart { max_restarts: 100, ..Restart::default() }, true, Starts::default());
        let delays: Vec<_> = (0..9).map(|_| backoff.next(now, Some(Duration::from_secs(29)), 1.0)).collect();
        let expected = [250, 500, 1000, 2000, 4000, 8000, 16000, 30000, 30000];
        assert_eq!(delays, expected.map(|ms| Next::Soon(Duration::from_millis(ms))));
        assert_eq!(backoff.next(now, Some(Duration::from_secs(30)), 0.0), Next::Soon(Duration::from_millis(125)));
    }

    #[test]
    fn starts_leave_the_window_and_failures_stay_until_it_is_well() {
        let seconds = Duration::from_secs;
        let plan = Restart { max_restarts: 3, window: seconds(60), healthy_after: seconds(10), ..Restart::default() };
        let begun = Instant::now();
        let soon = Next::Soon(Duration::from_millis(250));
        // Well each time, and more than a minute between: as often as it likes.
        let mut seldom = Backoff::new(plan.clone(), true, Starts::default());
        for round in 0..20 {
            seldom.started(begun + seconds(31) * round);
            assert_eq!(seldom.next(begun + seconds(31) * (round + 1), Some(seconds(31)), 1.0), soon, "{round}");
        }
        // The third within a minute is the last for now, and the first of them is forgotten when that is over.
        let mut often = Backoff::new(plan.clone(), true, Starts::default());
        [0, 20, 40].into_iter().for_each(|at| often.started(begun + seconds(at)));
        assert_eq!(often.next(begun + seconds(59), Some(seconds(19)), 1.0), Next::Slowly(seconds(60)));
        assert_eq!(often.next(begun + seconds(60), Some(seconds(20)), 1.0), soon);
        // Never well, and slow about it: the third failure is the last for now too, and so is each one after it.
        let mut slow = Backoff::new(plan, true, Starts::default());
        let mut fails = |at: u64| {
            slow.started(begun + seconds(at));
            slow.next(begun + seconds(at + 40), None, 1.0)
        };
        assert_eq!([fails(0), fails(40)], [soon, Next::Soon(Duration::from_millis(500))]);
        assert_eq!([fails(80), fails(180), fails(280)], [Next::Slowly(seconds(60)); 3]);
    }

    proptest! {
        #[test]
        fn the_budget_holds_whatever_the_dice_say(random in 0.0..1.0f64) {
            let spawns = starts(true, 60, || random);
            prop_assert!(spawns.iter().filter(|at| at.as_secs() < 60).count() <= 10);
            prop_assert!(spawns.len() <= 10 + 60, "{}", spawns.len());
            let dials = starts(false, 5, || random);
            prop_assert!(dials.len() <= 30, "{}", dials.len());
        }
    }
}
