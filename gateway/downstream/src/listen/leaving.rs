//! Whether clients are asked to leave: from the first signal of a shutdown on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set once, before the listener closes. From then on each response closes its connection, so that clients find another gateway while
/// this one still answers. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Leaving(Arc<AtomicBool>);

impl Leaving {
    /// Asks all clients to leave.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether they are asked.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
