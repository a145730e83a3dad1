//! What was last said of an upstream, so that it is not said again.

use crate::health::Cause;
use crate::health::row::State;
use std::sync::{Mutex, PoisonError};

/// Why it was last said not to be there, until it is again.
#[derive(Default)]
pub(crate) struct ReportedOnce(Mutex<Option<(State, String)>>);

impl ReportedOnce {
    /// Whether it was not said already, since it was last ready, that it is in this state for a reason of this class. Counts and times in
    /// a reason make no other, nor do the words of the upstream.
    pub(crate) fn is_news(&self, state: State, cause: Option<&Cause>) -> bool {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match state {
            State::Ready => *said = None,
            State::BackingOff | State::Failed => {
                let now = (state, cause.map(Cause::class).unwrap_or_default());
                return said.replace(now.clone()) != Some(now);
            }
            State::Starting | State::Degraded | State::Stopping | State::Idle | State::Stopped => {}
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_failure_is_said_once_until_it_is_ready_again() {
        let told = ReportedOnce::default();
        let said = |state, cause: &str| {
            let (own, foreign) = cause.split_once(':').unwrap_or((cause, ""));
            told.is_news(state, Some(&Cause::from(own).foreign(foreign)))
        };
        assert!(said(State::BackingOff, "HTTP 503 after 17 s:request 8a1f"));
        assert!(!said(State::BackingOff, "HTTP 503 after 18 s:request 77bc"));
        assert!(said(State::BackingOff, "HTTP 401 after 18 s:request 77bc"));
        assert!(said(State::BackingOff, "refused"));
        assert!(said(State::Failed, "refused"));
        assert!(said(State::Starting, "") && !said(State::Failed, "refused"));
        assert!(said(State::Ready, "") && said(State::Failed, "refused"));
    }
}
