//! Epochs of the connections to an HTTP upstream: all requests of one end together, with its reason.

use crate::health::Cause;
use crate::transport::exchange::Lost;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// Epochs of the connections to an upstream, one after the other. Connections and requests end with their epoch.
#[derive(Default)]
pub(crate) struct ConnectionEpoch {
    /// Which one it is now.
    number: AtomicU64,
    now: Mutex<Now>,
}

#[derive(Default)]
struct Now {
    /// Ends the connections of this epoch.
    over: CancellationToken,
    /// Why the last epoch ended.
    why: Option<Cause>,
}

impl ConnectionEpoch {
    /// Which one it is now.
    pub(crate) fn number(&self) -> u64 {
        self.number.load(Ordering::Acquire)
    }

    /// Ends this epoch and begins the next.
    pub(crate) fn end(&self, why: Cause) {
        let mut now = self.lock();
        self.number.fetch_add(1, Ordering::AcqRel);
        now.why = Some(why);
        let over = std::mem::take(&mut now.over);
        drop(now);
        over.cancel();
    }

    /// Ends the last epoch: a connection that is opened from now on ends at once.
    pub(crate) fn end_for_good(&self, why: Cause) {
        self.end(why);
        let over = self.lock().over.clone();
        over.cancel();
    }

    /// The token that ends with this epoch.
    pub(crate) fn over(&self) -> CancellationToken {
        self.now().1
    }

    /// The number of this epoch, and the token that ends with it.
    pub(crate) fn now(&self) -> (u64, CancellationToken) {
        let now = self.lock();
        (self.number(), now.over.clone())
    }

    /// Whether an epoch has ended.
    pub(crate) fn has_ended(&self, epoch: u64) -> bool {
        self.number() != epoch
    }

    /// Why an epoch has ended; `None` while it lasts.
    pub(crate) fn ended(&self, epoch: u64) -> Option<Cause> {
        if self.number() == epoch {
            return None;
        }
        self.lock().why.clone()
    }

    /// Resolves when an epoch has ended.
    pub(crate) async fn end_of(&self, epoch: u64) {
        let over = self.over();
        if self.number() == epoch {
            over.cancelled().await;
        }
    }

    /// Explains a loss by the end of its epoch, if that is its cause; whether it is.
    pub(crate) fn explain(&self, epoch: u64, lost: &mut Lost) -> bool {
        let Some(why) = self.ended(epoch) else { return false };
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
    async fn requests_end_with_their_epoch_and_get_its_reason() {
        let epoch = ConnectionEpoch::default();
        let (first, over) = (epoch.number(), epoch.over());
        assert!(epoch.ended(first).is_none() && !over.is_cancelled());
        epoch.end("by order".into());
        epoch.end_of(first).await;
        assert!(over.is_cancelled() && !epoch.over().is_cancelled(), "another one begins");
        assert_eq!(epoch.ended(first), Some("by order".into()));
        assert!(epoch.ended(epoch.number()).is_none());
        let mut lost = Lost::Unknown("the connection broke".into());
        assert!(!epoch.explain(epoch.number(), &mut lost) && epoch.explain(first, &mut lost));
        assert_eq!(lost.text().full(), "by order");
        let mut odd = Lost::Odd("nonsense".into());
        assert!(!epoch.explain(first, &mut odd), "what came of itself");
        epoch.end_for_good("stopping".into());
        assert!(epoch.over().is_cancelled());
    }
}
