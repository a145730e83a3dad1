//! So many in so much time: a rate, and how far one has come with it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// So many in so much time. After a rest all of them may come at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// So many; at least one.
    pub count: u64,
    /// In so much time; it is not zero.
    pub per: Duration,
}

impl Rate {
    /// The time that each of them takes.
    pub fn each(&self) -> Duration {
        Duration::from_nanos(nanos(self.per) / self.count.max(1))
    }

    /// Its time in words: "a second".
    pub fn every(&self) -> String {
        match self.per.as_secs() {
            1 => "a second".to_owned(),
            60 => "a minute".to_owned(),
            3600 => "an hour".to_owned(),
            seconds => format!("in {seconds} s"),
        }
    }
}

/// How far one has come with a rate: one number, changed without a lock.
///
/// It is the time at which all is as after a rest (the generic cell rate algorithm): each that comes moves it on by its part of the
/// rate's time, and what would move it further than that time from now is too much.
#[derive(Debug)]
pub struct RateCell {
    rate: Rate,
    since: Instant,
    rested_at: AtomicU64,
}

impl RateCell {
    /// One that has rested.
    pub fn new(rate: Rate) -> Self {
        Self { rate, since: Instant::now(), rested_at: AtomicU64::new(0) }
    }

    /// The rate.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Takes one; where there is none now, how long it is until there is.
    pub fn take(&self) -> Result<(), Duration> {
        let now = self.now();
        let moved =
            self.rested_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |rested| self.next(rested, now).ok());
        moved.map(drop).or_else(|rested| self.next(rested, now).map(drop))
    }

    /// Whether one may be taken; else how long it is until that is so.
    pub fn has_one(&self) -> Result<(), Duration> {
        self.next(self.rested_at.load(Ordering::Relaxed), self.now()).map(drop)
    }

    /// When all is as after a rest once one more was taken.
    fn next(&self, rested: u64, now: u64) -> Result<u64, Duration> {
        let step = self.step(1);
        let (next, most) = (rested.max(now).saturating_add(step), nanos(self.rate.per).max(step));
        if next - now <= most { Ok(next) } else { Err(Duration::from_nanos(next - now - most)) }
    }

    /// Whether less was taken than may be; else how long it is until that is so.
    pub fn has_any(&self) -> Result<(), Duration> {
        let (now, window) = (self.now(), nanos(self.rate.per));
        match self.rested_at.load(Ordering::Relaxed).saturating_sub(now) {
            ahead if ahead < window => Ok(()),
            ahead => Err(Duration::from_nanos(ahead - window + 1)),
        }
    }

    /// So many were taken, however many there were.
    pub fn owe(&self, count: u64) {
        let (now, step) = (self.now(), self.step(count));
        let owed = |rested: u64| Some(rested.max(now).saturating_add(step));
        // It is always changed.
        let _ = self.rested_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, owed);
    }

    /// How many of those that were taken count, as far as one of them does.
    pub fn taken(&self) -> u64 {
        self.rested_at.load(Ordering::Relaxed).saturating_sub(self.now()).div_ceil(self.step(1).max(1))
    }

    /// How many may be taken now.
    pub fn left(&self) -> u64 {
        self.rate.count.saturating_sub(self.taken())
    }

    /// Whether nothing that was taken counts any more.
    pub fn has_rested(&self) -> bool {
        self.rested_at.load(Ordering::Relaxed) <= self.now()
    }

    fn now(&self) -> u64 {
        nanos(self.since.elapsed())
    }

    fn step(&self, count: u64) -> u64 {
        let step = u128::from(count) * u128::from(nanos(self.rate.per)) / u128::from(self.rate.count.max(1));
        u64::try_from(step).unwrap_or(u64::MAX)
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    fn cell(count: u64, seconds: u64) -> RateCell {
        RateCell::new(Rate { count, per: Duration::from_secs(seconds) })
    }

    #[tokio::test(start_paused = true)]
    async fn all_may_come_at_once_after_a_rest_and_then_each_in_its_time() {
        let cell = cell(30, 60);
        assert_eq!((0..100).filter(|_| cell.take().is_ok()).count(), 30);
        assert_eq!(cell.take(), Err(Duration::from_secs(2)));
        advance(Duration::from_secs(1)).await;
        assert_eq!(cell.take(), Err(Duration::from_secs(1)), "and what was refused costs nothing");
        advance(Duration::from_secs(1)).await;
        assert_eq!((cell.take(), cell.take()), (Ok(()), Err(Duration::from_secs(2))));
        let mut taken = 0;
        for _ in 0..600 {
            advance(Duration::from_millis(500)).await;
            taken += usize::from(cell.take().is_ok());
        }
        assert_eq!(taken, 150, "of five minutes");
        advance(Duration::from_secs(3600)).await;
        assert!(cell.has_rested());
        assert_eq!((0..100).filter(|_| cell.take().is_ok()).count(), 30, "rest is not saved up");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_owed_is_waited_for() {
        let cell = cell(1000, 1);
        assert_eq!(cell.has_any(), Ok(()));
        cell.owe(5000);
        assert!(cell.has_any().is_err_and(|wait| wait > Duration::from_secs(3) && wait < Duration::from_secs(5)));
        advance(Duration::from_millis(4001)).await;
        assert_eq!(cell.has_any(), Ok(()));
        cell.owe(u64::MAX);
        assert!(cell.has_any().is_err() && cell.take().is_err());
    }

    #[test]
    fn many_at_once_take_no_more_than_there_are() {
        let cell = cell(1000, 3600);
        let taken: usize = std::thread::scope(|scope| {
            let one = || (0..1000).filter(|_| cell.take().is_ok()).count();
            let all: Vec<_> = (0..4).map(|_| scope.spawn(one)).collect();
            all.into_iter().map(|one| one.join().unwrap()).sum()
        });
        assert!((1000..=1001).contains(&taken), "{taken}");
    }
}
