//! What counts already as a failure of a child: its end, and the time in which it was silent.

use crate::peer::Peer;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::time::Instant;

/// The failures of a child that were counted last, so that one failure is not counted for each call that it ends.
#[derive(Default)]
pub(crate) struct Counted {
    end: Mutex<Weak<Peer>>,
    silence: Mutex<Option<Instant>>,
}

impl Counted {
    /// Whether the end of this one was not counted yet; it is from now on.
    pub(crate) fn is_first_end_of(&self, peer: &Arc<Peer>) -> bool {
        let mut last = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        let next = Arc::downgrade(peer);
        !Weak::ptr_eq(&last, &next) && {
            *last = next;
            true
        }
    }

    /// Whether the silence that a call met, sent then, is another one than the last that was counted; it is counted from now on. Calls
    /// that were under way at the same time meet the same one.
    pub(crate) fn is_another_silence(&self, sent: Instant) -> bool {
        let mut last = self.silence.lock().unwrap_or_else(PoisonError::into_inner);
        last.is_none_or(|last| last <= sent) && {
            *last = Some(Instant::now());
            true
        }
    }
}
