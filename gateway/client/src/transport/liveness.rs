//! Whether anything was heard of an upstream since somebody last began to listen: one look at a flag for whoever reads from it.

use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;

/// The signs of life of one link.
#[derive(Debug, Default)]
pub struct Liveness {
    was_heard: AtomicBool,
    heard: Notify,
}

impl Liveness {
    /// Something was heard.
    pub(crate) fn beat(&self) {
        // Only the first after a while of silence has anything to do.
        if !self.was_heard.load(Ordering::Relaxed) && !self.was_heard.swap(true, Ordering::AcqRel) {
            self.heard.notify_one();
        }
    }

    /// Begins to listen anew.
    pub fn listen(&self) {
        self.was_heard.store(false, Ordering::Release);
    }

    /// Whether anything was heard since.
    pub fn was_heard(&self) -> bool {
        self.was_heard.load(Ordering::Acquire)
    }

    /// Resolves when something was heard since; one listener at a time.
    pub async fn heard(&self) {
        while !self.was_heard() {
            self.heard.notified().await;
        }
    }
}
