//! When all that is under way with an HTTP upstream ends at once, and what whoever waits for it is told.

use crate::health::Cause;
use crate::upstream::transport::exchange::Lost;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// The lives of an upstream, one after the other. What was begun in one ends with it.
#[derive(Default)]
pub(super) struct ConnectionEpoch {
    /// Which one it is now.
    number: AtomicU64,
    now: Mutex<Now>,
}

#[derive(Default)]
struct Now {
    /// Ends the connections of this life.
    over: CancellationToken,
    /// Why the last life ended.
    why: Option<Cause>,
}

impl ConnectionEpoch {
    /// Which one it is now.
    pub(super) fn number(&self) -> u64 {
        self.number.load(Ordering::Acquire)
    }

    /// Ends this life; another one begins.
    pub(super) fn end(&self, why: Cause) {
        let mut now = self.lock();
        self.number.fetch_add(1, Ordering::AcqRel);
        now.why = Some(why);
        let over = std::mem::take(&mut now.over);
        drop(now);
        over.cancel();
    }

    /// Ends the last life: whatever connection is opened from now on ends at once.
    pub(super) fn end_for_good(&self, why: Cause) {
        self.end(why);
        let over = self.lock().over.clone();
        over.cancel();
    }

    /// What ends with this life.
    pub(super) fn over(&self) -> CancellationToken {
        self.now().1
    }

    /// Which life it is now, and what ends with it.
    pub(super) fn now(&self) -> (u64, CancellationToken) {
        let now = self.lock();
        (self.number(), now.over.clone())
    }

    /// Why what was begun in a life has ended; `None` while that lasts.
    pub(super) fn ended(&self, life: u64) -> Option<Cause> {
        if self.number() == life {
            return None;
        }
        self.lock().why.clone()
    }

    /// Resolves when a life has ended.
    pub(super) async fn end_of(&self, life: u64) {
        let over = self.over();
        if self.number() == life {
            over.cancelled().await;
        }
    }

    /// A loss in the words of the life's end, where that is what it comes of; whether it is.
    pub(super) fn explain(&self, life: u64, lost: &mut Lost) -> bool {
        let Some(why) = self.ended(life) else { return false };
        match lost {
            Lost::Unsent(text) | Lost::Unknown(text) => *text = why,
            _ => return false,
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_was_begun_in_a_life_ends_with_it_and_hears_why() {
        let lives = ConnectionEpoch::default();
        let (first, over) = (lives.number(), lives.over());
        assert!(lives.ended(first).is_none() && !over.is_cancelled());
        lives.end("by order".into());
        lives.end_of(first).await;
        assert!(over.is_cancelled() && !lives.over().is_cancelled(), "another one begins");
        assert_eq!(lives.ended(first), Some("by order".into()));
        assert!(lives.ended(lives.number()).is_none());
        let mut lost = Lost::Unknown("the connection broke".into());
        assert!(!lives.explain(lives.number(), &mut lost) && lives.explain(first, &mut lost));
        assert_eq!(lost.text().full(), "by order");
        let mut odd = Lost::Odd("nonsense".into());
        assert!(!lives.explain(first, &mut odd), "what came of itself");
        lives.end_for_good("stopping".into());
        assert!(lives.over().is_cancelled());
    }
}
