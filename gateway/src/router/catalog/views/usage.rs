//! Whether anybody has a use for a view: when it was looked at last, and who keeps it from being given up.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The use that a view is of.
pub(super) struct Usage {
    looked: Mutex<Instant>,
    /// Kept by those who listen, and by the views that are made of it.
    held: Arc<()>,
}

impl Usage {
    /// It is looked at now.
    pub(super) fn new() -> Self {
        Self { looked: Mutex::new(Instant::now()), held: Arc::default() }
    }

    /// What keeps the view from being given up, and tells its listeners from others.
    pub(super) fn held(&self) -> &Arc<()> {
        &self.held
    }

    /// When it was looked at last.
    pub(super) fn looked(&self) -> Instant {
        *self.lock()
    }

    /// It is looked at.
    pub(super) fn is_used(&self) {
        *self.lock() = Instant::now();
    }

    /// Whether nobody keeps it, or has looked at it for so long.
    pub(super) fn is_unused(&self, limit: Duration) -> bool {
        Arc::strong_count(&self.held) == 1 && self.looked().elapsed() >= limit
    }

    /// Whether it is to be given up now that its time is over. Where somebody keeps it, that begins anew.
    pub(super) fn is_over(&self, limit: Duration) -> bool {
        if Arc::strong_count(&self.held) > 1 {
            self.is_used();
        }
        self.is_unused(limit)
    }

    fn lock(&self) -> MutexGuard<'_, Instant> {
        self.looked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
