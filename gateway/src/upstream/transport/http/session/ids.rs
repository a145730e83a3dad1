//! The ids that an upstream has given its sessions: each is to be that of one session.

use http::HeaderValue;
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The ids of the sessions with one upstream.
#[derive(Default)]
pub(crate) struct SessionIds(Mutex<HashSet<HeaderValue>>);

impl SessionIds {
    /// A session was given this id; whether no other one has it.
    pub(super) fn take(&self, id: &HeaderValue) -> bool {
        self.lock().insert(id.clone())
    }

    /// The session with this id is over.
    pub(super) fn free(&self, id: &HeaderValue) {
        self.lock().remove(id);
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<HeaderValue>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
