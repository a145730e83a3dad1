//! Gates: where a script waits until the test lets it go on.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;

/// As many as anybody will ever wait.
pub(crate) const EVER: usize = 1 << 20;

/// All gates of one upstream, by name.
#[derive(Default)]
pub(crate) struct Gates {
    gates: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl Gates {
    fn gate(&self, name: &str) -> Arc<Semaphore> {
        let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        gates.entry(name.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(0))).clone()
    }

    /// Lets so many go on.
    pub(crate) fn release(&self, name: &str, count: usize) {
        self.gate(name).add_permits(count);
    }

    /// Waits for a release.
    pub(crate) async fn pass(&self, name: &str) {
        self.gate(name).acquire().await.expect("a gate is never closed").forget();
    }
}
