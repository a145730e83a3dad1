//! Asks before a request is sent whether it may be, and tells afterwards what became of it.

use super::super::super::ails::Ail;
use super::super::slot::Lost;
use super::advice::advice;
use super::refused::Refused;
use super::restraint::{Leave, seconds};
use super::wire::Wire;
use crate::protocol::frame::Body;
use http::StatusCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// The call that tries whether its upstream is well again, until it is known.
pub(super) struct Trial(Arc<Wire>);

impl Drop for Trial {
    fn drop(&mut self) {
        self.0.restraint.untried();
    }
}

impl Wire {
    /// Whether a request may be sent now; what is given is kept until its outcome was told to [`Self::judge`].
    pub(super) fn leave(self: &Arc<Self>, is_met: bool) -> Result<Option<Trial>, Lost> {
        if !self.restraint.is_marked() {
            return Ok(None);
        }
        match self.restraint.leave(Instant::now(), is_met) {
            Leave::Given => Ok(None),
            Leave::Trial => Ok(Some(Trial(self.clone()))),
            Leave::Refused(until, why) => Err(Lost::Barred(until, why.into())),
        }
    }

    /// What an outcome says of the upstream: a bare server error, or a connection that did not hold, is a failure of it.
    pub(super) fn judge(&self, outcome: &Result<Body, Lost>) {
        let failure = match outcome {
            Err(Lost::Unknown(why) | Lost::Unsent(why)) => Some(why),
            Err(Lost::Status(refusal)) if refusal.status >= 500 => Some(&refusal.text),
            // It works, and has enough of us.
            Err(Lost::Status(refusal)) if refusal.status == 429 => return,
            _ => None,
        };
        match failure {
            None if self.restraint.answered() => self.inbox.ails(Ail::Failing, None),
            None => {}
            Some(why) => {
                // All callers are told of it: no more than the status, since what it says more may be one caller's own.
                let in_short: Arc<str> = match outcome {
                    Err(Lost::Status(refusal)) => format!("HTTP {}", refusal.status).into(),
                    _ => why.clone(),
                };
                if let Some(told) = self.restraint.failed(Instant::now(), &in_short) {
                    self.inbox.ails(Ail::Failing, Some(&told.replacen(&*in_short, why, 1)));
                }
            }
        }
    }

    /// The upstream has taken a request.
    pub(super) fn admitted(&self) {
        if self.credentials.taken() {
            self.inbox.ails(Ail::Denied, None);
        }
    }

    /// The upstream has refused a request; where that speaks of credentials it is shown, and what to do.
    pub(super) fn denied(&self, status: StatusCode, refused: &Refused) {
        if self.credentials.refused(status) {
            let cause = format!("it refuses what it is asked: {}{}", refused.text(), advice(status.as_u16()));
            self.inbox.ails(Ail::Denied, Some(&cause));
        }
    }

    /// The upstream wants to be left alone for so long, and why.
    pub(super) fn pause(self: &Arc<Self>, pause: Duration, why: &str) {
        let until = Instant::now() + pause;
        if !self.restraint.pause(until) {
            return;
        }
        self.inbox.ails(Ail::Resting, Some(&format!("it asked to be left alone for {}: {why}", seconds(pause))));
        let wire = self.clone();
        self.tasks.spawn_until_end(async move {
            sleep_until(until).await;
            if wire.restraint.resumed(until) {
                wire.inbox.ails(Ail::Resting, None);
            }
        });
    }

    /// Resolves when the upstream does not want to be left alone.
    pub(super) async fn rested(&self) {
        while let Some(until) = self.restraint.paused() {
            if until <= Instant::now() {
                return;
            }
            sleep_until(until).await;
        }
    }

    /// Whether it wants to be left alone now.
    pub(super) fn is_resting(&self) -> bool {
        self.restraint.paused().is_some_and(|until| Instant::now() < until)
    }
}
