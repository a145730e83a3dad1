//! What was last said of an upstream, so that it is not said again.

use crate::lifecycle::State;
use std::sync::{Mutex, PoisonError};

/// Why it was last said not to be there, until it is again.
#[derive(Default)]
pub(crate) struct Told(Mutex<Option<(State, String)>>);

impl Told {
    /// Whether it was not said already, since it was last ready, that it is in this state for this reason. Figures in a
    /// reason (a process id, the name of a log file) make no other.
    pub(crate) fn is_news(&self, state: State, cause: &str) -> bool {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match state {
            State::Ready => *said = None,
            State::BackingOff | State::Failed => {
                let now = (state, cause.replace(|c: char| c.is_ascii_digit(), ""));
                return said.replace(now.clone()) != Some(now);
            }
            State::Starting | State::Degraded | State::Idle | State::Stopped => {}
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_failure_is_said_once_until_it_is_ready_again() {
        let told = Told::default();
        let said = |state, cause: &str| told.is_news(state, cause);
        assert!(said(State::BackingOff, "see 17.log"));
        assert!(!said(State::BackingOff, "see 18.log"));
        assert!(said(State::BackingOff, "refused"));
        assert!(said(State::Failed, "refused"));
        assert!(said(State::Starting, "") && !said(State::Failed, "refused"));
        assert!(said(State::Ready, "") && said(State::Failed, "refused"));
    }
}
