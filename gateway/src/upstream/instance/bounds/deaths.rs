//! Which end of a child was counted last.

use crate::upstream::peer::Peer;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The last child whose end was counted as a failure.
#[derive(Default)]
pub(crate) struct Deaths(Mutex<Weak<Peer>>);

impl Deaths {
    /// Whether the end of this one was not counted yet; it is from now on.
    pub(crate) fn is_first_of(&self, peer: &Arc<Peer>) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let next = Arc::downgrade(peer);
        !Weak::ptr_eq(&last, &next) && {
            *last = next;
            true
        }
    }
}
