//! When a timer is believed. After the process stood still (a signal, a machine that slept, a crowd) a timer fires although what it
//! waits for lies ready: first whoever reads has a turn.

use super::reused::{Timer, Timers};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

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
    poll_fn(|cx| {
        loop {
            ready!(sleep.as_mut().poll(cx));
            let Some(next) = next_turn(&mut turns, sleep.deadline()) else { return Poll::Ready(()) };
            sleep.as_mut().reset(next);
        }
    })
    .await;
}

/// The same, so long from now on.
pub async fn passes(time: Duration) {
    passed(after(time)).await;
}

/// What the future resolves to within this time.
pub async fn within<F: Future>(time: Duration, future: F) -> Result<F::Output, Late> {
    within_until(after(time), future).await
}

/// What the future resolves to by then.
pub async fn within_until<F: Future>(until: Instant, future: F) -> Result<F::Output, Late> {
    tokio::select! {
        biased;
        output = future => Ok(output),
        () = passed(until) => Err(Late),
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
