//! What was last said of an upstream, so that it is not said again.

use crate::health::row::State;
use crate::health::{Cause, CauseCode};
use std::sync::{Mutex, PoisonError};

/// Why it was last said not to be there, until it is again.
#[derive(Default)]
pub(crate) struct ReportedOnce(Mutex<Option<(State, Vec<CauseCode>)>>);

impl ReportedOnce {
    /// Whether it was not said already, since it was last ready, that it is in this state for a reason of these kinds. Counts and times in
    /// a reason make no other, nor do the words of the upstream.
    pub(crate) fn is_news(&self, state: State, cause: Option<&Cause>) -> bool {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match state {
            State::Ready => *said = None,
            State::BackingOff | State::Failed => {
                let now = (state, cause.map(|cause| cause.codes().to_vec()).unwrap_or_default());
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
        use CauseCode::{ConnectRefused, HttpStatus, Unknown};
        let said = |state, code, cause: &str| {
            let (own, foreign) = cause.split_once(':').unwrap_or((cause, ""));
            told.is_news(state, Some(&Cause::new(code, own).foreign(foreign)))
        };
        assert!(said(State::BackingOff, HttpStatus(503), "HTTP 503 after 17 s:request 8a1f"));
        assert!(!said(State::BackingOff, HttpStatus(503), "HTTP 503 after 18 s:request 77bc"));
        assert!(said(State::BackingOff, HttpStatus(401), "HTTP 401 after 18 s:request 77bc"));
        let refused = |state| said(state, ConnectRefused, "refused");
        assert!(refused(State::BackingOff) && refused(State::Failed));
        assert!(said(State::Starting, Unknown, "") && !refused(State::Failed));
        assert!(said(State::Ready, Unknown, "") && refused(State::Failed));
    }
}
