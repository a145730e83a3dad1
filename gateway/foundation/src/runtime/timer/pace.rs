//! How fast what a peer has begun must come: with a least rate and a longest pause, whoever begins much cannot keep it open for ever.

use super::late::{Late, within_until};
use std::time::Duration;
use tokio::time::Instant;

/// Whatever was begun must come at least so fast, bytes a second, once it has paused. Bytes earn it time, never more than one pause
/// ahead: what came in one go leaves no time to trickle.
const PACE_MIN: u32 = 16 * 1024;

/// After a time in which the process stood still what lies ready is read first, and earns its time; so long that may take. A longer
/// wait counts as one of this length: the process may have stood still meanwhile.
const BEHIND_MAX: Duration = Duration::from_secs(2);
const WAIT_MAX: Duration = Duration::from_millis(500);

/// By when more must come of what was begun. Most is there already: the clock runs only from the first time that it is waited for.
#[derive(Debug)]
pub struct Pace {
    pause: Duration,
    /// What was begun and has paused.
    begun: Option<Begun>,
}

/// Something that has paused.
#[derive(Debug, Clone, Copy)]
struct Begun {
    number: u64,
    /// By when more of it must come, and how much of it had come when that was reckoned.
    due: Instant,
    so_far: usize,
    /// When it was waited for last, and for how long it has been behind.
    asked: Instant,
    behind: Duration,
}

impl Pace {
    /// The longest pause is this.
    pub fn new(pause: Duration) -> Self {
        Self { pause, begun: None }
    }

    /// What more there is of what was begun: its number, and how much of it has come so far. Another number is another thing; without one
    /// there is no hurry.
    pub async fn keep<T>(&mut self, begun: Option<(u64, usize)>, more: impl Future<Output = T>) -> Result<T, Late> {
        let Some((number, so_far)) = begun else {
            // What was begun has ended: what is begun next has its own time.
            self.begun = None;
            return Ok(more.await);
        };
        let due = self.due(number, so_far).ok_or(Late)?;
        within_until(due, more).await
    }

    /// By when more must come; `None` where it is behind for too long. Whoever lets a byte come again and again would be waited for
    /// each time, if only for the turn that whoever reads has before a timer is believed.
    fn due(&mut self, number: u64, so_far: usize) -> Option<Instant> {
        let now = Instant::now();
        let latest = now.checked_add(self.pause).unwrap_or_else(|| now + Duration::from_secs(30 * 365 * 24 * 60 * 60));
        let first = Begun { number, due: latest, so_far, asked: now, behind: Duration::ZERO };
        let known = self.begun.filter(|begun| begun.number == number).unwrap_or(first);
        let earned = Duration::from_secs_f64(so_far.saturating_sub(known.so_far) as f64 / f64::from(PACE_MIN));
        let due = (known.due + earned).min(latest);
        let behind = match due > now {
            true => Duration::ZERO,
            false => known.behind + (now - known.asked).min(WAIT_MAX),
        };
        self.begun = Some(Begun { number, due, so_far, asked: now, behind });
        (behind < BEHIND_MAX).then_some(due)
    }

    /// It was not read for a while: the clock begins anew.
    pub fn restart(&mut self) {
        self.begun = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::{advance, sleep};

    const PAUSE: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn what_trickles_is_given_up_however_often_some_of_it_comes() {
        for gap in [1, 5, 19, 100, 499, 1_000, 10_000] {
            let (mut pace, begun, mut so_far) = (Pace::new(PAUSE), Instant::now(), 0);
            while pace.keep(Some((7, so_far)), sleep(Duration::from_millis(gap))).await.is_ok() {
                so_far += 1;
                assert!(begun.elapsed() < 2 * PAUSE, "a piece each {gap} ms is waited for for ever");
            }
            assert!(begun.elapsed() >= PAUSE, "{gap}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_fast_enough_and_what_lies_ready_after_a_standstill_is_waited_for() {
        let (mut pace, mut so_far) = (Pace::new(PAUSE), 0);
        for _ in 0..1_000 {
            assert_eq!(pace.keep(Some((7, so_far)), sleep(Duration::from_secs(1))).await, Ok(()));
            so_far += 17 * 1024;
        }
        // The process stands still, and then reads what has come meanwhile, in small pieces.
        for _ in 0..3 {
            advance(2 * PAUSE).await;
            for _ in 0..1_000 {
                assert_eq!(pace.keep(Some((7, so_far)), sleep(Duration::from_millis(1))).await, Ok(()));
                so_far += 1_500;
            }
        }
        assert_eq!(pace.keep(None, sleep(4 * PAUSE)).await, Ok(()));
        // Signs of life that come in two pieces each: nobody counts them.
        for _ in 0..100 {
            assert_eq!(pace.keep(Some((7, so_far)), sleep(Duration::from_millis(2))).await, Ok(()));
            assert_eq!(pace.keep(None, sleep(Duration::from_secs(5))).await, Ok(()));
            so_far += 2;
        }
        assert_eq!(pace.keep(Some((8, 0)), sleep(4 * PAUSE)).await, Err(Late));
    }
}
