//! How it is told where an upstream stands: on the board, in the metrics, and in one line of the log a change.

use super::link::{Tail, without};
use super::notice::Notice;
use super::standing::Standing;
use super::words;
use crate::call::{Call, Refusal};
use crate::lifecycle::State;
use crate::signals;
use std::time::Duration;
use tokio::time::Instant;

impl Standing {
    /// The state for the board, the metrics and the log: one line a change.
    pub(crate) fn moved(&self, state: State, cause: Option<&str>, tail: Option<&Tail>, retry_in: Option<Duration>) {
        self.moved_from(|_| true, state, cause, tail, retry_in);
    }

    /// As [`Self::moved`], where it is in a state that `may` leave for this one.
    pub(crate) fn moved_from(
        &self,
        may: impl FnOnce(State) -> bool,
        state: State,
        cause: Option<&str>,
        tail: Option<&Tail>,
        retry_in: Option<Duration>,
    ) {
        let mut before = None;
        self.seat.update(|health| {
            if !may(health.state) {
                return;
            }
            before = Some((health.state, health.cause.clone()));
            health.state = state;
            health.cause = cause.map(str::to_owned);
            health.retry_at = retry_in.and_then(|delay| Instant::now().checked_add(delay));
            if let Some(tail) = tail {
                health.stderr = tail.lines();
            }
            if matches!(state, State::BackingOff | State::Failed | State::Idle | State::Stopped) {
                health.pid = None;
            }
        });
        let Some((before, known)) = before else { return };
        if self.beside.is_none() {
            self.metrics.up.set(f64::from(u8::from(state == State::Ready)));
            self.metrics.state(state.as_str(), State::ALL.into_iter().map(State::as_str));
        }
        if before == state && known.as_deref() == cause {
            return;
        }
        let (upstream, cause, instance) = (&*self.name, cause.unwrap_or_default(), self.number());
        if before.is_up() && !state.is_up() {
            (self.notices)(Notice::Gone { upstream: self.name.clone(), whose: self.holding.audience() });
        }
        let is_news = self.told.is_news(state, cause);
        let retry_in = retry_in.map(|delay| format!("{:.1} s", delay.as_secs_f32())).unwrap_or_default();
        match state {
            State::BackingOff | State::Failed if !is_news => {
                tracing::debug!(target: signals::UPSTREAM_STATE, upstream, instance, cause, retry_in, "the upstream failed again as before")
            }
            State::BackingOff => {
                let text = "the upstream is not available and is tried again";
                tracing::warn!(target: signals::UPSTREAM_STATE, upstream, instance, cause, retry_in, "{text}")
            }
            State::Failed => {
                tracing::error!(target: signals::UPSTREAM_STATE, upstream, instance, cause, retry_in, "the upstream has failed")
            }
            State::Starting if before == state => {}
            State::Starting => tracing::debug!(upstream, instance, "the upstream is being started"),
            State::Idle => {
                tracing::info!(target: signals::UPSTREAM_STATE, upstream, instance, "the upstream rests until it is needed")
            }
            State::Stopped if cause.is_empty() => tracing::debug!(upstream, instance, "the upstream is stopped"),
            State::Stopped => {
                tracing::info!(target: signals::UPSTREAM_STATE, upstream, instance, cause, "the upstream is stopped")
            }
            State::Degraded => {
                tracing::warn!(target: signals::UPSTREAM_STATE, upstream, instance, cause, "the upstream is there and not well")
            }
            State::Ready if before == State::Degraded => {
                tracing::info!(target: signals::UPSTREAM_STATE, upstream, instance, "the upstream is well again")
            }
            State::Ready => {}
        }
    }

    /// Refuses a call, since it will not be there soon.
    pub(crate) fn unavailable(&self, call: &Call, cause: &str) -> Refusal {
        let retry_in = self.seat.retry_at().map(|at| at.saturating_duration_since(Instant::now()));
        words::unavailable(&self.name, call, cause, retry_in)
    }

    /// Why it is not ready, in words for who calls it.
    pub(crate) fn cause(&self) -> String {
        let health = self.seat.health();
        match (health.state, health.cause) {
            (State::Starting, cause) => {
                // What its last life ended of stands there until there is something to say of this one.
                let known = cause.map(|cause| format!(" ({})", without(&cause))).unwrap_or_default();
                format!("it is still starting, for {} s now{known}; try again", health.since.elapsed().as_secs())
            }
            (_, Some(cause)) => cause,
            (state, None) => format!("it is in state {}", state.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::rig::{Rig, config};
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_starts_is_said_to_and_for_how_long_by_now() {
        let standing = Rig::new(config()).standing;
        tokio::time::advance(Duration::from_secs(4)).await;
        assert_eq!(standing.cause(), "it is still starting, for 4 s now; try again");
        let cause = "it exited with status 1; its last line on stderr: a secret";
        standing.moved(State::Starting, Some(cause), None, None);
        tokio::time::advance(Duration::from_secs(38)).await;
        assert_eq!(standing.cause(), "it is still starting, for 42 s now (it exited with status 1); try again");
        standing.moved(State::BackingOff, Some("it was killed"), None, None);
        assert_eq!(standing.cause(), "it was killed");
    }
}
