//! What follows the end of one life of an upstream: the next one, when it begins, and whether it counts.

use crate::health::row::State;
use crate::health::{Cause, CauseCode};
use crate::metrics;
use crate::peer::fault::{Fault, FaultKind};
use crate::upstream::backoff;
use crate::upstream::backoff::{Backoff, Next as Delay, Starts};
use crate::upstream::config::{Config, Restart, RestartPolicy};
use crate::upstream::instance::admission::gate::Retired;
use crate::upstream::status::Status;
use std::time::Duration;
use tokio::time::Instant;

/// A session that was lost sooner than this is not simply opened anew.
const SESSION_MIN: Duration = Duration::from_secs(1);

/// How one life of an upstream ended.
#[derive(Debug)]
pub(crate) enum Exit {
    /// It did not come up.
    Unmet(Fault),
    /// It was up, and its link is gone.
    Gone { cause: Cause, up: Duration, how: Gone },
    /// It was up, and a call found it unusable.
    Retired { why: Retired, up: Duration },
}

/// How a link went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gone {
    /// A child exited and said that all is well.
    Clean,
    /// It ended otherwise.
    Crashed,
    /// It closed its pipe, and did not exit by itself.
    HungUp,
}

/// What follows an end that nobody asked for.
pub(crate) enum Decision {
    /// At once; it does not count.
    Now,
    /// After a while.
    After { delay: Duration, state: State, cause: Cause, reason: &'static str },
    /// Never.
    Rest { state: State, cause: Cause },
}

/// What is remembered from one life to the next.
pub(crate) struct Restarts {
    backoff: Backoff,
    /// The child ended when it was asked which era it speaks: the next one is not asked.
    is_not_asked: bool,
    /// The start that comes does not count.
    is_free: bool,
    /// There was one that did not count, since it was last met.
    had_free: bool,
}

impl Restarts {
    /// Of an upstream that was never started.
    pub(crate) fn new(restart: Restart, is_child: bool, starts: Starts) -> Self {
        Self { backoff: Backoff::new(restart, is_child, starts), is_not_asked: false, is_free: false, had_free: false }
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
    pub(crate) fn after(&mut self, config: &Config, status: &Status, end: Exit) -> Decision {
        let now = Instant::now();
        let (cause, up, is_clean, kind, reason) = match end {
            Exit::Unmet(Fault { kind: FaultKind::EndedWhenAsked, text }) if !self.is_not_asked => {
                self.is_not_asked = true;
                if !std::mem::replace(&mut self.had_free, true) {
                    let (upstream, cause) = (&*config.name, &*text.full());
                    let said = "upstream exited on `server/discover`; restarting without it";
                    tracing::info!(target: metrics::UPSTREAM_STATE, upstream, state = "starting", cause, cause_code = text.code().as_str(), "{said}");
                    status
                        .handle
                        .update(|health| health.note(Cause::default().own("on `server/discover`: ").then(&text)));
                    self.is_free = true;
                    return Decision::Now;
                }
                (text, None, false, FaultKind::EndedWhenAsked, "start_failed")
            }
            Exit::Unmet(Fault { text, kind }) => (text, None, false, kind, "start_failed"),
            Exit::Gone { cause, up, how } => {
                let reason = match how {
                    Gone::Clean => "exit",
                    Gone::Crashed => "crash",
                    Gone::HungUp => "lost",
                };
                let kind = FaultKind::of_end(&cause);
                (cause, Some(up), how == Gone::Clean, kind, reason)
            }
            Exit::Retired { why: Retired::Session(text) | Retired::Revision(text), up } if up >= SESSION_MIN => {
                let (upstream, cause) = (&*config.name, &*text.full());
                tracing::info!(target: metrics::UPSTREAM_STATE, upstream, state = "starting", cause, cause_code = text.code().as_str(), "reconnecting to upstream");
                return Decision::Now;
            }
            Exit::Retired { why: Retired::Hung(text), up } => {
                (Cause::new(CauseCode::Hung, hung(config)).then(&text), Some(up), false, FaultKind::Passing, "hang")
            }
            Exit::Retired {
                why: Retired::Session(text) | Retired::Revision(text) | Retired::Unreachable(text),
                up,
            } => (text, Some(up), false, FaultKind::Passing, "lost"),
        };
        self.is_not_asked &= kind == FaultKind::EndedWhenAsked;
        if cause.code() == CauseCode::ClientTokenRefused {
            // The upstream has not failed: the next token of the client ends the pause.
            return Decision::After { delay: self.backoff.hopeless(), state: State::Idle, cause, reason };
        }
        match config.restart.policy {
            RestartPolicy::OnFailure if is_clean => {
                return Decision::Rest { state: State::Stopped, cause: resting(&config.name, &cause) };
            }
            RestartPolicy::Never => {
                let state = if is_clean { State::Stopped } else { State::Failed };
                return Decision::Rest { state, cause: resting(&config.name, &cause) };
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
        Decision::After { delay, state, cause, reason }
    }
}

fn hung(config: &Config) -> &'static str {
    if config.is_child() { "hung and was killed: " } else { "hung and was disconnected: " }
}

/// The cause of an end after which nothing is started again.
fn resting(upstream: &str, cause: &Cause) -> Cause {
    cause.clone().own("; not restarted (`restart` policy)").advise(&format!("run `trunkline start {upstream}`"))
}

#[cfg(test)]
mod tests;
