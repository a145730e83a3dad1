//! The listeners, and which of them are a session's.

use super::registry::Listener;
use slab::Slab;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// The listeners, and which of them are a session's.
#[derive(Default)]
pub(super) struct Table {
    pub(super) all: Slab<Arc<Listener>>,
    pub(super) by_session: HashMap<Arc<str>, BTreeSet<usize>>,
}

impl Table {
    pub(super) fn insert(&mut self, listener: &Arc<Listener>) -> usize {
        let key = self.all.insert(listener.clone());
        if let Some(session) = &listener.session {
            self.by_session.entry(session.clone()).or_default().insert(key);
        }
        key
    }

    pub(super) fn remove(&mut self, key: usize) {
        let Some(session) = self.all.remove(key).session.clone() else { return };
        if let Some(keys) = self.by_session.get_mut(&session) {
            keys.remove(&key);
            if keys.is_empty() {
                self.by_session.remove(&session);
            }
        }
    }
}
