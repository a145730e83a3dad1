//! The time limits of a call: when they run, stand still, and are passed.

use super::standing::Standing;
use crate::call::Call;
use crate::signals;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// How long a call waits for an upstream that starts.
const START_WAIT: Duration = Duration::from_secs(5);

/// The time limits of a call: one that progress extends, and one that nothing does.
pub(crate) struct Limits {
    /// Between two signs of life.
    idle: Option<Duration>,
    /// In all.
    whole: Option<Duration>,
    idle_until: Option<Instant>,
    whole_until: Option<Instant>,
    /// Since when they stand still: a person is being asked.
    stopped: Option<Instant>,
    /// Made when it is first needed, and set anew only when it fires too early.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Limits {
    pub(crate) fn new(standing: &Standing, call: &Call) -> Self {
        let config = &standing.config;
        let (idle, whole) = if call.method.is_long() {
            (config.call_timeout, config.max_call_time)
        } else {
            (None, config.request_timeout)
        };
        Self { idle, whole, idle_until: None, whole_until: None, stopped: None, timer: None }
    }

    /// The time runs from now.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.idle_until = self.idle.and_then(|idle| now.checked_add(idle));
        self.whole_until = self.whole.and_then(|whole| now.checked_add(whole));
        self.timer = None;
    }

    /// Nothing is sent yet: it waits for the upstream.
    pub(crate) fn wait(&mut self, now: Instant) {
        let wait = [Some(START_WAIT), self.idle, self.whole].into_iter().flatten().min().unwrap_or(START_WAIT);
        self.idle_until = None;
        self.whole_until = Some(now + wait);
        self.timer = None;
    }

    /// They stand still.
    pub(crate) fn stop(&mut self, since: Instant) {
        self.stopped.get_or_insert(since);
    }

    /// They go on, where they stood still.
    pub(crate) fn go_on(&mut self, now: Instant, metrics: &signals::Upstream) {
        let Some(since) = self.stopped.take() else { return };
        let waited = now.duration_since(since);
        metrics.waiting.record(waited.as_secs_f64());
        self.whole_until = self.whole_until.and_then(|until| until.checked_add(waited));
        self.extend(now);
    }

    /// A sign of life.
    pub(crate) fn extend(&mut self, now: Instant) {
        self.idle_until = self.idle.and_then(|idle| now.checked_add(idle));
    }

    /// The limit that was passed.
    pub(crate) fn limit(&self) -> Duration {
        match (self.idle_until, self.whole_until) {
            (Some(idle), Some(whole)) if whole < idle => self.whole.unwrap_or_default(),
            (Some(_), _) => self.idle.unwrap_or_default(),
            _ => self.whole.unwrap_or_default(),
        }
    }

    /// Resolves when the time is over.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(until) = [self.idle_until, self.whole_until].into_iter().flatten().min() else { return Poll::Pending };
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        loop {
            ready!(timer.as_mut().poll(cx));
            if timer.deadline() >= until {
                return Poll::Ready(());
            }
            timer.as_mut().reset(until);
        }
    }
}
