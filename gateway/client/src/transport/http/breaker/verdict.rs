//! When nothing is sent to an upstream over HTTP, or to a child: it failed again and again, or it asked to be left alone.

use crate::config::BreakerConfig;
use crate::health::{Cause, CauseCode};
use crate::metrics::legs::Transitions;
use crate::metrics::sampled;
use crate::transport::exchange::Lost;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// What holds back the requests to one upstream, whatever session they are of.
#[derive(Debug, Default)]
pub struct Breaker {
    config: Option<BreakerConfig>,
    /// Whether anything is to be looked at: as long as all is well nobody takes the lock.
    is_marked: AtomicBool,
    inner: Mutex<Inner>,
    /// What it changes to.
    transitions: Transitions,
    /// Held while it changes and that is shown, so that the last one that is shown is true.
    showing: Mutex<()>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Failures since the last answer.
    failures: u32,
    /// Until when nothing is sent because of them, and what the last one was.
    open: Option<(Instant, Cause)>,
    /// One call tries whether it is well again.
    is_tried: bool,
    /// Until when the upstream wants to be left alone.
    pause: Option<Instant>,
}

/// Whether a request may be sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It may.
    Allow,
    /// It is the one that tries whether the upstream is well again.
    Probe,
    /// Not before then, and why.
    Reject(Instant, Cause),
}

impl Breaker {
    /// Creates a closed breaker without metrics. Without a configuration it never opens.
    pub fn new(config: Option<BreakerConfig>) -> Self {
        Self { config, ..Self::default() }
    }

    /// Creates the breaker of an upstream. While it exists, the metrics show its state, unless the configuration turns it off.
    pub fn shown(upstream: &str, config: Option<BreakerConfig>) -> Arc<Self> {
        if config.is_none() {
            return Arc::new(Self::new(None));
        }
        let breaker = Arc::new(Self { transitions: Transitions::of(upstream), ..Self::new(config) });
        let seen = Arc::downgrade(&breaker);
        sampled::breaker(upstream, move || Some(seen.upgrade()?.state(Instant::now())));
        breaker
    }

    /// 0 closed, 1 half-open: the next call tries, or one does; 2 open.
    fn state(&self, now: Instant) -> usize {
        if !self.is_marked() {
            return 0;
        }
        self.lock().open.as_ref().map_or(0, |(until, _)| if now < *until { 2 } else { 1 })
    }

    /// Whether there is anything to be looked at.
    pub fn is_marked(&self) -> bool {
        self.is_marked.load(Ordering::Acquire)
    }

    /// Whether a request may be sent now. Who is only being met is bound by nothing but its own wish: meeting has its own pace.
    pub(crate) fn verdict(&self, now: Instant, is_met: bool) -> Verdict {
        if !self.is_marked() {
            return Verdict::Allow;
        }
        let mut inner = self.lock();
        if let Some(until) = inner.pause.filter(|until| now < *until) {
            let why = format!("rate-limited by the upstream (Retry-After), {} left", seconds(until - now));
            return Verdict::Reject(until, Cause::new(CauseCode::RateLimited, why));
        }
        let Some((until, last)) = inner.open.clone().filter(|_| is_met) else { return Verdict::Allow };
        let failures = inner.failures;
        let refused = |until, then: &str| Verdict::Reject(until, failing(failures, &last, then));
        if now < until {
            return refused(until, &format!("circuit breaker open, {} left", seconds(until - now)));
        }
        if std::mem::replace(&mut inner.is_tried, true) {
            return refused(now, "circuit breaker half-open: one call is trying");
        }
        self.transitions.half_open();
        Verdict::Probe
    }

    /// Whether a request may be sent now: then whether it is the one that tries.
    pub fn admits(&self, is_met: bool) -> Result<bool, Lost> {
        match self.verdict(Instant::now(), is_met) {
            Verdict::Allow => Ok(false),
            Verdict::Probe => Ok(true),
            Verdict::Reject(until, why) => Err(Lost::Barred(until, why)),
        }
    }

    /// It has answered; whether that ends a time in which nothing was sent.
    pub fn answered(&self) -> bool {
        if !self.is_marked() {
            return false;
        }
        let mut inner = self.lock();
        (inner.failures, inner.is_tried) = (0, false);
        let was_open = inner.open.take().is_some();
        if was_open {
            self.transitions.closed();
        }
        self.is_marked.store(inner.pause.is_some(), Ordering::Release);
        was_open
    }

    /// It has failed; the reason to be shown where nothing is sent to it from now on.
    pub fn failed(&self, now: Instant, why: &Cause) -> Option<Cause> {
        let config = self.config.as_ref()?;
        let mut inner = self.lock();
        self.is_marked.store(true, Ordering::Release);
        inner.failures = inner.failures.saturating_add(1);
        let is_open = inner.open.as_ref().is_some_and(|(until, _)| now < *until);
        if inner.failures < config.failures || is_open {
            return None;
        }
        inner.is_tried = false;
        self.transitions.open();
        inner.open = now.checked_add(config.open_for).map(|until| (until, why.clone()));
        let then = format!("circuit breaker open for {}, then one call tries", seconds(config.open_for));
        Some(failing(inner.failures, why, &then))
    }

    /// The call that tried has ended without an outcome: another one may try.
    pub fn untried(&self) {
        self.lock().is_tried = false;
    }

    /// It wants to be left alone; whether that is longer than was known.
    pub(crate) fn pause(&self, until: Instant) -> bool {
        let mut inner = self.lock();
        self.is_marked.store(true, Ordering::Release);
        let is_longer = inner.pause.is_none_or(|known| known < until);
        if is_longer {
            inner.pause = Some(until);
        }
        is_longer
    }

    /// Until when it wants to be left alone.
    pub(crate) fn paused(&self) -> Option<Instant> {
        if self.is_marked() { self.lock().pause } else { None }
    }

    /// Resolves when it does not want to be left alone.
    pub(crate) async fn rested(&self) {
        while let Some(until) = self.paused() {
            if until <= Instant::now() {
                return;
            }
            sleep_until(until).await;
        }
    }

    /// Whether it wants to be left alone now.
    pub(crate) fn is_resting(&self) -> bool {
        self.paused().is_some_and(|until| Instant::now() < until)
    }

    /// Its pause is over, where it is not a longer one by now.
    pub(crate) fn resumed(&self, now: Instant) -> bool {
        let mut inner = self.lock();
        let is_over = inner.pause.is_none_or(|until| until <= now);
        if is_over {
            inner.pause = None;
            self.is_marked.store(inner.failures > 0, Ordering::Release);
        }
        is_over
    }

    /// One change at a time is made and shown.
    pub fn shows(&self) -> MutexGuard<'_, ()> {
        self.showing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn failing(failures: u32, last: &Cause, then: &str) -> Cause {
    let begins = format!("failed {} (last: ", in_a_row(failures));
    Cause::new(CauseCode::BreakerOpen, begins).then(last).own(&format!("); {then}"))
}

fn in_a_row(failures: u32) -> String {
    match failures {
        1 => "once".to_owned(),
        more => format!("{more} times in a row"),
    }
}

pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f32())
}

#[cfg(test)]
mod tests;
