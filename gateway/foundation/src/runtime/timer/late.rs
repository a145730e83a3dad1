//! When a timer is believed. After the process stood still (a signal, a machine that slept, a crowd) a timer fires although what it
//! waits for lies ready: first whoever reads has a turn.

use super::reused::{Timer, Timers};
use pin_project_lite::pin_project;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// Whoever reads has so long once a timer has fired. Nobody waits for it who is answered in time.
const TURN: Duration = Duration::from_millis(20);
/// So long where it fired this late: then much may lie ready, and whoever writes it goes on as it is read.
const LATE: Duration = Duration::from_millis(50);
const TURN_IF_LATE: Duration = Duration::from_millis(500);
/// So many turns at most, while each of them comes to an end as late.
const TURNS_MAX: u32 = 4;

/// A time-out: what was waited for had not come when all that lay ready was read.
#[derive(Debug, PartialEq, Eq)]
pub struct Late;

/// A timer that is believed once it resolves.
pub struct Alarm {
    timer: Timer,
    until: Instant,
    turns: u32,
}

impl Alarm {
    /// One for this time.
    pub fn at(until: Instant) -> Self {
        Self { timer: Timer::at(until), until, turns: 0 }
    }

    /// One for this time, of those that are used again.
    pub fn of(timers: &Arc<Timers>, until: Instant) -> Self {
        Self { timer: timers.take(until), until, turns: 0 }
    }

    /// One for so long from now on.
    pub fn after(time: Duration) -> Self {
        Self::at(after(time))
    }

    /// When it fires.
    pub fn until(&self) -> Instant {
        self.until
    }

    /// Winds it up anew. It may be late in firing for a time that is nearer than the last one was.
    pub fn reset(&mut self, until: Instant) {
        if self.until != until {
            (self.until, self.turns) = (until, 0);
            self.timer.reset(until);
        }
    }

    /// Resolves when its time is over and whoever reads has had a turn.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.timer.poll(cx));
            let Some(next) = next_turn(&mut self.turns, self.timer.until()) else { return Poll::Ready(()) };
            self.timer.reset(next);
        }
    }
}

/// When the next turn ends, where there is one.
fn next_turn(turns: &mut u32, due: Instant) -> Option<Instant> {
    let (now, turn) = (Instant::now(), *turns);
    let late = now.saturating_duration_since(due);
    let is_enough = turn >= TURNS_MAX || (turn > 0 && late < LATE);
    *turns += 1;
    (!is_enough).then(|| now + if late < LATE { TURN } else { TURN_IF_LATE })
}

fn after(time: Duration) -> Instant {
    let now = Instant::now();
    // So far away that nobody waits for it.
    now.checked_add(time).unwrap_or_else(|| now + Duration::from_secs(30 * 365 * 24 * 60 * 60))
}

/// Resolves when this time is over and whoever reads has had a turn.
pub async fn passed(until: Instant) {
    let mut sleep = pin!(sleep_until(until));
    let mut turns = 0;
    poll_fn(|cx| poll_passed(sleep.as_mut(), &mut turns, cx)).await;
}

fn poll_passed(mut sleep: Pin<&mut Sleep>, turns: &mut u32, cx: &mut Context<'_>) -> Poll<()> {
    loop {
        ready!(sleep.as_mut().poll(cx));
        let Some(next) = next_turn(turns, sleep.deadline()) else { return Poll::Ready(()) };
        sleep.as_mut().reset(next);
    }
}

/// The same, so long from now on.
pub async fn passes(time: Duration) {
    passed(after(time)).await;
}

/// What the future resolves to within this time, from the first look at it.
pub fn within<F: Future>(time: Duration, future: F) -> Within<F> {
    Within { future, limit: Limit::Time(time), sleep: None, turns: 0 }
}

/// What the future resolves to by then.
pub fn within_until<F: Future>(until: Instant, future: F) -> Within<F> {
    Within { future, limit: Limit::Until(until), sleep: None, turns: 0 }
}

#[derive(Debug, Clone, Copy)]
enum Limit {
    Time(Duration),
    Until(Instant),
}

pin_project! {
    /// A future with a limit; made by [`within`] and [`within_until`]. It is a type of its own since an `async fn` holds what it is given
    /// twice: a future of three such limits is eight times as large.
    #[derive(Debug)]
    #[must_use = "a future does nothing unless polled"]
    pub struct Within<F> {
        #[pin]
        future: F,
        limit: Limit,
        // There once the future had to be waited for.
        #[pin]
        sleep: Option<Sleep>,
        turns: u32,
    }
}

impl<F: Future> Future for Within<F> {
    type Output = Result<F::Output, Late>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let until = match *this.limit {
            Limit::Time(time) => after(time),
            Limit::Until(until) => until,
        };
        *this.limit = Limit::Until(until);
        if let Poll::Ready(output) = this.future.poll(cx) {
            return Poll::Ready(Ok(output));
        }
        if this.sleep.is_none() {
            this.sleep.set(Some(sleep_until(until)));
        }
        match this.sleep.as_pin_mut() {
            Some(sleep) => poll_passed(sleep, this.turns, cx).map(|()| Err(Late)),
            None => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;
    use tokio::task::yield_now;
    use tokio::time::advance;

    /// What was ready all the time is taken by a reader that has its turn only after the clock has jumped.
    #[tokio::test(start_paused = true)]
    async fn what_lies_ready_when_the_clock_jumps_is_read_before_the_timer_is_believed() {
        for freeze in [Duration::from_millis(3_000), Duration::from_secs(60)] {
            let (tell, told) = oneshot::channel();
            let reader = async {
                advance(freeze).await;
                // A few turns of others come first.
                for _ in 0..50 {
                    yield_now().await;
                }
                tell.send(7).unwrap();
            };
            let (answer, ()) = tokio::join!(within(Duration::from_secs(3), told), reader);
            assert_eq!(answer, Ok(Ok(7)), "{freeze:?}");
        }
    }

    #[test]
    fn a_limit_is_no_second_copy_of_what_it_limits() {
        let large = || async {
            let kept = [1_u8; 4096];
            tokio::task::yield_now().await;
            kept.len()
        };
        let limited = within(Duration::ZERO, within(Duration::ZERO, large()));
        assert!(size_of_val(&limited) < size_of_val(&large()) + 1024, "{}", size_of_val(&limited));
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_is_hardly_late_where_nothing_stood_still() {
        let begun = Instant::now();
        assert_eq!(within(Duration::from_secs(3), std::future::pending::<()>()).await, Err(Late));
        assert_eq!(begun.elapsed(), Duration::from_secs(3) + TURN);
        let mut alarm = Alarm::after(Duration::from_secs(1));
        alarm.reset(Instant::now() + Duration::from_secs(2));
        poll_fn(|cx| alarm.poll(cx)).await;
        assert_eq!(begun.elapsed(), Duration::from_secs(5) + 2 * TURN);
        assert_eq!(within(Duration::MAX, async { 1 }).await, Ok(1));
    }
}
