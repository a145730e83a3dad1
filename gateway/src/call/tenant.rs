//! A legacy session as the inside knows it: whose questions are its, how it is asked, and when it has ended.

use super::ask::Ask;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// How a session takes a question that belongs to no open call of it; gives it back where it cannot.
type Asking = Box<dyn Fn(Box<Ask>) -> Result<(), Box<Ask>> + Send + Sync>;

/// A legacy session as the inside knows it. What belongs to a session alone is compared and found by its id.
pub struct Tenant {
    id: Arc<str>,
    ended: CancellationToken,
    asking: Asking,
}

impl Tenant {
    /// A session with this id; questions outside of its calls go to `asking`.
    pub fn new(id: Arc<str>, asking: impl Fn(Box<Ask>) -> Result<(), Box<Ask>> + Send + Sync + 'static) -> Self {
        Self { id, ended: CancellationToken::new(), asking: Box::new(asking) }
    }

    /// One that cannot be asked.
    pub fn mute(id: &str) -> Self {
        Self::new(id.into(), Err)
    }

    /// Its id, which is secret: it is never shown.
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// Puts a question to it that belongs to no call; gives it back where the session cannot be asked.
    pub fn ask(&self, ask: Box<Ask>) -> Result<(), Box<Ask>> {
        if self.ended.is_cancelled() {
            return Err(ask);
        }
        (self.asking)(ask)
    }

    /// Its client has gone: what was kept for it is given up.
    pub fn end(&self) {
        self.ended.cancel();
    }

    /// Resolves when it has ended.
    pub async fn ended(&self) {
        self.ended.cancelled().await;
    }
}

impl std::fmt::Debug for Tenant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tenant").field("ended", &self.ended.is_cancelled()).finish_non_exhaustive()
    }
}
