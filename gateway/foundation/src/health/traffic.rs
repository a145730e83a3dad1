//! How much an upstream has to do: counted as it happens, read by whoever shows it.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The calls of one upstream that have not ended.
#[derive(Debug, Default)]
pub struct Traffic {
    open: AtomicUsize,
    queued: AtomicUsize,
}

impl Traffic {
    /// A call was taken.
    pub fn began(&self) {
        self.open.fetch_add(1, Ordering::Relaxed);
    }

    /// A call has ended.
    pub fn ended(&self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    /// So many of them wait to be sent; how many it were before.
    pub fn queue(&self, count: usize) -> usize {
        self.queued.swap(count, Ordering::SeqCst)
    }

    /// How many wait to be sent.
    pub fn queued(&self) -> usize {
        self.queued.load(Ordering::SeqCst)
    }

    /// How many have not ended, waiting ones too.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// How many the upstream has.
    pub fn in_flight(&self) -> usize {
        self.open.load(Ordering::Relaxed).saturating_sub(self.queued())
    }
}
