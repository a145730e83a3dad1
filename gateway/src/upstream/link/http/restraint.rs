//! When nothing is sent to an HTTP upstream: it failed again and again, or it asked to be left alone.

use super::super::super::config::Breaker;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// What holds back the requests to one upstream, whatever session they are of.
#[derive(Debug, Default)]
pub(super) struct Restraint {
    breaker: Option<Breaker>,
    /// Whether anything is to be looked at: as long as all is well nobody takes the lock.
    is_marked: AtomicBool,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Failures since the last answer.
    failures: u32,
    /// Until when nothing is sent because of them, and what the last one was.
    open: Option<(Instant, Arc<str>)>,
    /// One call tries whether it is well again.
    is_tried: bool,
    /// Until when the upstream wants to be left alone.
    pause: Option<Instant>,
}

/// Whether a request may be sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Leave {
    Given,
    /// It is the one that tries.
    Trial,
    /// Not before, and why.
    Refused(Instant, String),
}

impl Restraint {
    pub(super) fn new(breaker: Option<Breaker>) -> Self {
        Self { breaker, ..Self::default() }
    }

    /// Whether there is anything to be looked at.
    pub(super) fn is_marked(&self) -> bool {
        self.is_marked.load(Ordering::Acquire)
    }

    /// Whether a request may be sent now. Who is only being met is bound by nothing but its own wish: meeting has its own pace.
    pub(super) fn leave(&self, now: Instant, is_met: bool) -> Leave {
        if !self.is_marked() {
            return Leave::Given;
        }
        let mut inner = self.lock();
        if let Some(until) = inner.pause.filter(|until| now < *until) {
            let why = format!("it asked to be left alone, for another {}", seconds(until - now));
            return Leave::Refused(until, why);
        }
        let Some((until, last)) = inner.open.clone().filter(|_| is_met) else { return Leave::Given };
        let failures = inner.failures;
        let refused = |until, then: &str| {
            Leave::Refused(until, format!("it failed {} (the last time: {last}); {then}", in_a_row(failures)))
        };
        if now < until {
            return refused(until, &format!("no call is sent to it for another {}", seconds(until - now)));
        }
        if std::mem::replace(&mut inner.is_tried, true) {
            return refused(now, "one call tries just now whether it is well again");
        }
        Leave::Trial
    }

    /// It has answered; whether that ends a time in which nothing was sent.
    pub(super) fn answered(&self) -> bool {
        if !self.is_marked() {
            return false;
        }
        let mut inner = self.lock();
        (inner.failures, inner.is_tried) = (0, false);
        let was_open = inner.open.take().is_some();
        self.is_marked.store(inner.pause.is_some(), Ordering::Release);
        was_open
    }

    /// It has failed; the reason to be shown where nothing is sent to it from now on.
    pub(super) fn failed(&self, now: Instant, why: &Arc<str>) -> Option<String> {
        let breaker = self.breaker.as_ref()?;
        let mut inner = self.lock();
        self.is_marked.store(true, Ordering::Release);
        inner.failures = inner.failures.saturating_add(1);
        let is_open = inner.open.as_ref().is_some_and(|(until, _)| now < *until);
        if inner.failures < breaker.failures || is_open {
            return None;
        }
        inner.is_tried = false;
        inner.open = now.checked_add(breaker.open_for).map(|until| (until, why.clone()));
        let (failures, pause) = (in_a_row(inner.failures), seconds(breaker.open_for));
        Some(format!(
            "it failed {failures} (the last time: {why}); no call is sent to it for {pause}, then one call tries"
        ))
    }

    /// The call that tried has ended without an outcome: another one may try.
    pub(super) fn untried(&self) {
        self.lock().is_tried = false;
    }

    /// It wants to be left alone; whether that is longer than was known.
    pub(super) fn pause(&self, until: Instant) -> bool {
        let mut inner = self.lock();
        self.is_marked.store(true, Ordering::Release);
        let is_longer = inner.pause.is_none_or(|known| known < until);
        if is_longer {
            inner.pause = Some(until);
        }
        is_longer
    }

    /// Until when it wants to be left alone.
    pub(super) fn paused(&self) -> Option<Instant> {
        if self.is_marked() { self.lock().pause } else { None }
    }

    /// Its pause is over, where it is not a longer one by now.
    pub(super) fn resumed(&self, now: Instant) -> bool {
        let mut inner = self.lock();
        let is_over = inner.pause.is_none_or(|until| until <= now);
        if is_over {
            inner.pause = None;
            self.is_marked.store(inner.failures > 0, Ordering::Release);
        }
        is_over
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn in_a_row(failures: u32) -> String {
    match failures {
        1 => "once".to_owned(),
        more => format!("{more} times in a row"),
    }
}

pub(super) fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f32())
}

#[cfg(test)]
mod tests;
