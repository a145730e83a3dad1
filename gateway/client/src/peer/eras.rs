//! Which era an instance speaks with its upstream, and what came of trying one.

use super::fault::Fault;
use crate::health::CauseCode;
use crate::protocol::revision::Era;
use crate::transport::http::StatusClass;
use std::sync::atomic::{AtomicU8, Ordering};
use tokio::sync::watch;

/// The era that an instance spoke last; none until it was first met.
#[derive(Debug, Default)]
pub struct SpokenEra(AtomicU8);

impl SpokenEra {
    /// Whether it is this one.
    pub fn is(&self, era: Era) -> bool {
        self.0.load(Ordering::Acquire) == mark(era)
    }

    /// Which one it is.
    pub fn get(&self) -> Option<Era> {
        [Era::Legacy, Era::Modern].into_iter().find(|era| self.is(*era))
    }

    /// The upstream was met in this one.
    pub fn set(&self, era: Era) {
        self.0.store(mark(era), Ordering::Release);
    }
}

fn mark(era: Era) -> u8 {
    match era {
        Era::Legacy => 1,
        Era::Modern => 2,
    }
}

/// What came of trying an era.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// It is being tried.
    Sought,
    /// The upstream speaks it.
    Speaks,
    /// The upstream has said that it does not.
    Refuses,
    /// It was refused by a mere status, which may be that of a proxy without a server behind it.
    Doubtful,
    /// The attempt failed, which says nothing of the era.
    Failed,
}

impl Finding {
    /// The word for it in the log.
    pub fn word(self) -> &'static str {
        match self {
            Self::Sought => "sought",
            Self::Speaks => "speaks",
            Self::Refuses => "refuses",
            Self::Doubtful => "doubtful",
            Self::Failed => "failed",
        }
    }
}

/// Of an instance that is there only if its upstream speaks a second era.
#[derive(Debug)]
pub struct Trial(watch::Sender<Finding>);

impl Default for Trial {
    /// Nothing is known yet.
    fn default() -> Self {
        Self(watch::Sender::new(Finding::Sought))
    }
}

impl Trial {
    /// What is known.
    pub fn finding(&self) -> Finding {
        *self.0.borrow()
    }

    /// Tells of what is found from now on.
    pub fn findings(&self) -> watch::Receiver<Finding> {
        self.0.subscribe()
    }

    /// The upstream was met.
    pub fn met(&self) {
        self.0.send_replace(Finding::Speaks);
    }

    /// The upstream was not met; whether that ends the trial: an upstream that was met before is tried again, unless it refuses.
    pub fn unmet(&self, fault: &Fault) -> bool {
        let (code, is_first) = (fault.text.code(), self.finding() == Finding::Sought);
        let finding = match is_first {
            _ if refuses(code) => match code {
                CauseCode::HttpStatus(_) => Finding::Doubtful,
                _ => Finding::Refuses,
            },
            // A child that ends at once when it is asked knows nothing of the question, or bears no second one beside it.
            true if has_ended(code) => Finding::Refuses,
            true => Finding::Failed,
            false => return false,
        };
        self.0.send_replace(finding);
        true
    }
}

/// Whether the cause of a failed meeting says that the upstream does not speak the era, and not only that it is unwell.
fn refuses(code: CauseCode) -> bool {
    match code {
        CauseCode::HandshakeRefused | CauseCode::HandshakeInvalid | CauseCode::RevisionUnsupported => true,
        CauseCode::HttpStatus(status) => !StatusClass::of(status).says_nothing(),
        _ => false,
    }
}

fn has_ended(code: CauseCode) -> bool {
    matches!(code, CauseCode::Exited(_) | CauseCode::Killed(_) | CauseCode::PipeClosed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::Cause;

    #[test]
    fn a_refusal_ends_a_trial_for_long_and_an_outage_says_nothing() {
        let fault = |code| Fault::passing(Cause::new(code, "no"));
        for (code, finding) in [
            (CauseCode::HandshakeRefused, Finding::Refuses),
            (CauseCode::HandshakeInvalid, Finding::Refuses),
            (CauseCode::RevisionUnsupported, Finding::Refuses),
            (CauseCode::HttpStatus(400), Finding::Doubtful),
            (CauseCode::HttpStatus(404), Finding::Doubtful),
            (CauseCode::HttpStatus(401), Finding::Failed),
            (CauseCode::HttpStatus(429), Finding::Failed),
            (CauseCode::HttpStatus(503), Finding::Failed),
            (CauseCode::TimedOut, Finding::Failed),
        ] {
            let trial = Trial::default();
            assert!(trial.unmet(&fault(code)));
            assert_eq!(trial.finding(), finding, "{code:?}");
            let trial = Trial::default();
            trial.met();
            assert_eq!(trial.unmet(&fault(code)), finding != Finding::Failed, "{code:?} when it was met before");
        }
    }

    #[test]
    fn an_era_is_known_once_it_was_spoken() {
        let era = SpokenEra::default();
        assert_eq!(era.get(), None);
        era.set(Era::Modern);
        assert!(era.is(Era::Modern) && !era.is(Era::Legacy));
        era.set(Era::Legacy);
        assert_eq!(era.get(), Some(Era::Legacy));
    }
}
