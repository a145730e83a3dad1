//! What follows the end of one life of an upstream: the next one, when it begins, and whether it counts.

use super::backoff::{self, Backoff, Next as Delay};
use super::config::{Restart, RestartPolicy};
use super::fault::{Fault, FaultKind};
use super::gate::Retired;
use super::link::without;
use super::standing::Standing;
use crate::lifecycle::State;
use crate::signals;
use std::time::Duration;
use tokio::time::Instant;

/// A session that was lost sooner than this is not simply opened anew.
const SESSION_MIN: Duration = Duration::from_secs(1);

/// How one life of an upstream ended.
#[derive(Debug)]
pub(crate) enum End {
    /// It did not come up.
    Unmet(Fault),
    /// It was up, and its link is gone.
    Gone { cause: String, up: Duration, is_clean: bool },
    /// It was up, and a call found it unusable.
    Retired { why: Retired, up: Duration },
}

/// What follows an end that nobody asked for.
pub(crate) enum Course {
    /// At once; it does not count.
    Now,
    /// After a while.
    After { delay: Duration, state: State, cause: String, reason: &'static str },
    /// Never.
    Rest { state: State, cause: String },
}

/// What is remembered from one life to the next.
pub(crate) struct Lives {
    backoff: Backoff,
    /// The child ended when it was asked which era it speaks: the next one is not asked.
    is_not_asked: bool,
    /// The start that comes does not count.
    is_free: bool,
    /// There was one that did not count, since it was last met.
    had_free: bool,
}

impl Lives {
    /// Of an upstream that was never started.
    pub(crate) fn new(restart: Restart, is_child: bool) -> Self {
        Self { backoff: Backoff::new(restart, is_child), is_not_asked: false, is_free: false, had_free: false }
    }

    /// Whether the next life is not asked for its era.
    pub(crate) fn is_not_asked(&self) -> bool {
        self.is_not_asked
    }

    /// A life begins; one that follows a rest is no attempt to mend anything.
    pub(crate) fn started(&mut self, now: Instant, was_at_rest: bool) {
        if !std::mem::take(&mut self.is_free) && !was_at_rest {
            self.backoff.started(now);
        }
    }

    /// It came up.
    pub(crate) fn met(&mut self) {
        (self.is_not_asked, self.had_free) = (false, false);
    }

    /// What follows this end.
    pub(crate) fn course(&mut self, standing: &Standing, end: End) -> Course {
        let now = Instant::now();
        let (cause, up, is_clean, kind, reason) = match end {
            End::Unmet(Fault { kind: FaultKind::EndedWhenAsked, text }) if !self.is_not_asked => {
                self.is_not_asked = true;
                if !std::mem::replace(&mut self.had_free, true) {
                    let (upstream, cause) = (&*standing.name, &*text);
                    let said = "the upstream ended when it was asked which revision it speaks, and is started again without that";
                    tracing::info!(target: signals::UPSTREAM_STATE, upstream, cause, "{said}");
                    standing.seat.update(|health| health.note(&format!("asked which revision it speaks, {text}")));
                    self.is_free = true;
                    return Course::Now;
                }
                (text, None, false, FaultKind::EndedWhenAsked, "start_failed")
            }
            End::Unmet(Fault { text, kind }) => (text, None, false, kind, "start_failed"),
            End::Gone { cause, up, is_clean } => {
                (cause, Some(up), is_clean, FaultKind::Passing, if is_clean { "exit" } else { "crash" })
            }
            End::Retired { why: Retired::Session(text) | Retired::Revision(text), up } if up >= SESSION_MIN => {
                let (upstream, cause) = (&*standing.name, &*text);
                tracing::info!(target: signals::UPSTREAM_STATE, upstream, cause, "the upstream is met anew");
                return Course::Now;
            }
            End::Retired { why: Retired::Hung(text), up } => {
                (format!("it hung and was killed: {text}"), Some(up), false, FaultKind::Passing, "hang")
            }
            End::Retired { why: Retired::Session(text) | Retired::Revision(text) | Retired::Unreachable(text), up } => {
                (text.to_string(), Some(up), false, FaultKind::Passing, "lost")
            }
        };
        self.is_not_asked &= kind == FaultKind::EndedWhenAsked;
        match standing.config.restart.policy {
            RestartPolicy::OnFailure if is_clean => {
                return Course::Rest { state: State::Stopped, cause: resting(&standing.name, &cause) };
            }
            RestartPolicy::Never => {
                let state = if is_clean { State::Stopped } else { State::Failed };
                return Course::Rest { state, cause: resting(&standing.name, &cause) };
            }
            _ => {}
        }
        let (delay, state) = match (kind, self.backoff.next(now, up, backoff::random())) {
            (FaultKind::Hopeless, _) => (self.backoff.hopeless(), State::Failed),
            (FaultKind::NotBefore(least), Delay::Soon(delay) | Delay::Slowly(delay)) => {
                (delay.max(least), State::BackingOff)
            }
            (_, Delay::Soon(delay)) => (delay, State::BackingOff),
            (_, Delay::Slowly(delay)) => (delay, State::Failed),
        };
        Course::After { delay, state, cause, reason }
    }
}

/// The cause of an end after which nothing is started again. A child's own words stay the last.
fn resting(upstream: &str, cause: &str) -> String {
    let (cause, own) = cause.split_at(without(cause).len());
    format!("{cause}; the key `restart` has it stay so, until `trunkline start {upstream}`{own}")
}

#[cfg(test)]
mod tests;
