//! The time limits of a call: when they run, stand still, and are passed.

use super::messages::Passed;
use crate::call::Call;
use crate::metrics;
use crate::protocol::frame::Method;
use crate::runtime::timer::Timers;
use crate::runtime::timer::late::Alarm;
use crate::upstream::config::Config;
use crate::upstream::instance::admission::waiter::WaitingFor;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Instant;

/// One limit of a call's time.
#[derive(Debug, Clone, Copy)]
struct Deadline {
    passed: Passed,
    until: Option<Instant>,
}

/// The time limits of a call: one that progress extends, and one that nothing does.
pub(crate) struct Deadlines {
    /// Between two signs of life.
    idle: Option<Deadline>,
    /// In all.
    whole: Option<Deadline>,
    /// How long it may wait for an upstream that starts.
    start_wait: Duration,
    /// While nothing of it is sent yet.
    wait_until: Option<Instant>,
    /// Since when they stand still: a person is being asked.
    stopped: Option<Instant>,
    /// Made when it is first needed, and set anew only when it fires too early.
    timer: Option<Alarm>,
    timers: Arc<Timers>,
}

impl Deadlines {
    pub(crate) fn new(config: &Config, timers: &Arc<Timers>, call: &Call) -> Self {
        let limit = |time: Option<Duration>, key, is_of_tool| {
            time.map(|time| Deadline { passed: Passed { time, key, is_of_tool }, until: None })
        };
        let (idle, whole) = if call.method.is_long() {
            let own = (!config.tool_times.is_empty() && call.method == Method::ToolsCall)
                .then(|| config.tool_times.get(&*call.target_name()?))
                .flatten();
            let of = |general: Option<Duration>, own: Option<Option<Duration>>, key| {
                limit(own.unwrap_or(general), key, own.is_some())
            };
            (
                of(config.call_timeout, own.and_then(|own| own.call_timeout), "call_timeout"),
                of(config.max_call_time, own.and_then(|own| own.max_call_time), "max_call_time"),
            )
        } else {
            (None, limit(config.request_timeout, "request_timeout", false))
        };
        let start_wait = config.start_wait;
        Self { idle, whole, start_wait, wait_until: None, stopped: None, timer: None, timers: timers.clone() }
    }

    /// The time runs from now; that which nothing extends runs on, where it ran already.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.extend(now);
        if let Some(whole) = &mut self.whole {
            whole.until = whole.until.or_else(|| now.checked_add(whole.passed.time));
        }
        self.wait_until = None;
        self.timer = None;
    }

    /// Nothing is sent yet: since then it waits for the upstream, or for other calls to end.
    pub(crate) fn wait(&mut self, wait_for: WaitingFor, since: Instant) {
        self.wait_until = (wait_for == WaitingFor::Start).then(|| since + self.start_wait);
        self.timer = None;
    }

    /// They stand still.
    pub(crate) fn stop(&mut self, since: Instant) {
        self.stopped.get_or_insert(since);
    }

    /// They go on, where they stood still.
    pub(crate) fn go_on(&mut self, metrics: &metrics::Upstream) {
        let Some(since) = self.stopped.take() else { return };
        let now = Instant::now();
        let waited = now.duration_since(since);
        metrics.waiting.record(waited.as_secs_f64());
        if let Some(whole) = &mut self.whole {
            whole.until = whole.until.and_then(|until| until.checked_add(waited));
        }
        self.extend(now);
    }

    /// A sign of life.
    pub(crate) fn extend(&mut self, now: Instant) {
        if let Some(idle) = &mut self.idle {
            idle.until = now.checked_add(idle.passed.time);
        }
    }

    /// From now on there must be a sign of life at least this often.
    pub(crate) fn tighten(&mut self, idle: Duration, now: Instant) {
        if self.idle.is_none_or(|known| known.passed.time > idle) {
            self.idle = Some(Deadline { passed: Passed { time: idle, key: "", is_of_tool: false }, until: None });
        }
        self.timer = None;
        self.extend(now);
    }

    /// The limit that was passed.
    pub(crate) fn limit(&self) -> Passed {
        let both = [self.idle, self.whole].into_iter().flatten().filter(|limit| limit.until.is_some());
        let first = both.min_by_key(|limit| limit.until);
        first.map_or(Passed { time: self.start_wait, key: "start_wait", is_of_tool: false }, |limit| limit.passed)
    }

    /// Resolves when the time is over.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let all = [self.idle.and_then(|idle| idle.until), self.whole.and_then(|whole| whole.until), self.wait_until];
        let Some(until) = all.into_iter().flatten().min() else { return Poll::Pending };
        let timer = self.timer.get_or_insert_with(|| Alarm::of(&self.timers, until));
        if timer.poll(cx).is_pending() {
            return Poll::Pending;
        }
        if timer.until() >= until {
            return Poll::Ready(());
        }
        timer.reset(until);
        timer.poll(cx)
    }
}
