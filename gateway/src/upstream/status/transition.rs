//! How a change of state is shown: on the board, in the metrics, and in one line of the log.

use super::record::Status;
use crate::health::row::State;
use crate::health::{Cause, CauseCode};
use crate::metrics;
use crate::runtime::complaints::left_unsaid;
use std::time::Duration;
use tokio::time::Instant;

impl Status {
    /// The state for the board, the metrics and the log: one line a change.
    pub(crate) fn transition(
        &self,
        state: State,
        cause: Option<&Cause>,
        stderr: Option<Vec<String>>,
        retry_in: Option<Duration>,
    ) {
        self.transition_from(|_| true, state, cause, stderr, retry_in);
    }

    /// As [`Self::transition`], where it is in a state that `may` leave for this one.
    pub(super) fn transition_from(
        &self,
        may: impl FnOnce(State) -> bool,
        state: State,
        cause: Option<&Cause>,
        stderr: Option<Vec<String>>,
        retry_in: Option<Duration>,
    ) {
        let mut before = None;
        self.handle.update(|health| {
            if !may(health.state) {
                return;
            }
            before = Some((health.state, health.cause.clone()));
            health.state = state;
            health.cause = cause.cloned();
            health.retry_at = retry_in.and_then(|delay| Instant::now().checked_add(delay));
            if let Some(lines) = stderr {
                health.stderr = lines;
            }
            if matches!(state, State::BackingOff | State::Failed | State::Idle | State::Stopped) {
                health.pid = None;
            }
        });
        let Some((before, known)) = before else { return };
        if self.number.is_none() {
            self.metrics.up.set(f64::from(u8::from(state == State::Ready)));
            self.metrics.state(state.as_str(), State::ALL.into_iter().map(State::as_str));
        }
        // Counts, times and the words of the upstream may differ each time: they are shown, and not told again.
        let is_same = match (&known, cause) {
            (Some(known), Some(cause)) if state.is_up() => known.codes() == cause.codes(),
            (known, cause) => known.as_ref() == cause,
        };
        if before == state && is_same {
            return;
        }
        if before.is_up() && !state.is_up() {
            self.notices.gone();
        }
        if let (State::BackingOff | State::Failed, Some(cause)) = (state, cause) {
            self.note_at_upstream(cause);
        }
        self.log_transition(before, state, cause, retry_in);
    }

    /// Logs a change of state: one line, and none where a start failed as the one before it. Of instances beside the primary one that
    /// fail there is a line now and then, however many they are.
    fn log_transition(&self, before: State, state: State, cause: Option<&Cause>, retry_in: Option<Duration>) {
        let (upstream, instance, word) = (&*self.name, self.number, state.as_str());
        let is_failure = matches!(state, State::BackingOff | State::Failed);
        let more = match self.reported.is_news(state, cause) {
            true if is_failure && instance.is_some() => self.siblings.may_say("failed"),
            is_news => is_news.then_some(0),
        };
        let (is_news, more) = (more.is_some(), more.and_then(left_unsaid));
        let (cause_code, cause_number) = (cause.map(|cause| cause.code().as_str()), cause.and_then(Cause::number));
        let cause = &*cause.map(Cause::full).unwrap_or_default();
        let retry_in = retry_in.map(|delay| format!("{:.1} s", delay.as_secs_f32())).unwrap_or_default();
        match state {
            _ if is_failure && !is_news => {
                tracing::debug!(target: metrics::UPSTREAM_STATE, upstream, instance, state = word, cause, cause_code, cause_number, retry_in, "upstream failed again")
            }
            State::BackingOff => {
                let text = "upstream unavailable; retrying";
                tracing::warn!(target: metrics::UPSTREAM_STATE, upstream, instance, state = word, cause, cause_code, cause_number, retry_in, more, "{text}")
            }
            State::Failed => {
                tracing::error!(target: metrics::UPSTREAM_STATE, upstream, instance, state = word, cause, cause_code, cause_number, retry_in, more, "upstream failed")
            }
            State::Starting if before == state => {}
            State::Starting => tracing::debug!(upstream, instance, "upstream starting"),
            State::Stopping => tracing::debug!(upstream, instance, cause, "upstream stopping"),
            State::Idle => {
                tracing::info!(target: metrics::UPSTREAM_STATE, upstream, instance, state = word, "upstream idle; starts on the next request")
            }
            State::Stopped if cause.is_empty() => tracing::debug!(upstream, instance, "upstream stopped"),
            State::Stopped => {
                tracing::info!(target: metrics::UPSTREAM_STATE, upstream, instance, state = word, cause, cause_code, cause_number, "upstream stopped")
            }
            State::Degraded => {
                tracing::warn!(target: metrics::UPSTREAM_STATE, upstream, instance, state = word, cause, cause_code, cause_number, "upstream degraded")
            }
            State::Ready if before == State::Degraded => {
                tracing::info!(target: metrics::UPSTREAM_STATE, upstream, instance, state = word, "upstream recovered")
            }
            State::Ready => {}
        }
    }

    /// How long it is until the next attempt, where one is due.
    pub(crate) fn retry_in(&self) -> Option<Duration> {
        Some(self.handle.retry_at()?.saturating_duration_since(Instant::now()))
    }

    /// Why it is not ready, in words for the caller; its end may take so long.
    pub(crate) fn cause(&self, stop_limit: Option<Duration>) -> Cause {
        let health = self.handle.health();
        match (health.state, health.cause) {
            (State::Starting, cause) => {
                // What its last life ended of stands there until there is something to say of this one.
                let known = cause.map(|cause| Cause::default().own("; ").then(&cause)).unwrap_or_default();
                let begun = format!("still starting ({} s", health.since.elapsed().as_secs());
                Cause::new(CauseCode::Starting, begun).then(&known).own(")").advise("try again")
            }
            (State::Stopping, cause) => being_ended(&cause.unwrap_or_default(), stop_limit),
            // It was given up in this moment: its supervisor is about to say why.
            (State::Ready | State::Degraded, _) => {
                Cause::new(CauseCode::ConnectionLost, "connection just lost").advise("try again")
            }
            (_, Some(cause)) => cause,
            (state, None) => Cause::new(CauseCode::Unknown, format!("its state is {}", state.as_str())),
        }
    }
}

/// Why no call is taken while what is left of a lost or stopped upstream is being ended.
pub(crate) fn being_ended(cause: &Cause, limit: Option<Duration>) -> Cause {
    let said = if cause.is_empty() { Cause::new(CauseCode::Stopping, "upstream stopping") } else { cause.clone() };
    match limit {
        Some(limit) => {
            let seconds = limit.as_secs_f32();
            said.own(&format!("; its process is ending (at most {seconds} s, `stop_timeout`)"))
        }
        None => said.own("; it is being stopped"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::tests::rig::{Rig, config};

    #[tokio::test(start_paused = true)]
    async fn who_starts_is_said_to_and_for_how_long_by_now() {
        let rig = Rig::new(config());
        let status = &rig.instance.status;
        tokio::time::advance(Duration::from_secs(4)).await;
        assert_eq!(status.cause(None).full(), "still starting (4 s); try again");
        let cause = Cause::from("exited with status 1").foreign("; last line on stderr: a secret");
        status.transition(State::Starting, Some(&cause), None, None);
        tokio::time::advance(Duration::from_secs(38)).await;
        assert_eq!(status.cause(None).public(), "still starting (42 s; exited with status 1); try again");
        status.transition(State::BackingOff, Some(&"it was killed".into()), None, None);
        assert_eq!(status.cause(None).full(), "it was killed");
    }
}
