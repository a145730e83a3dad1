//! The ids that an upstream has given its sessions: each is to be that of one session.

use http::HeaderValue;
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A session that an upstream has given an id.
pub trait HasId: Send + Sync {
    /// Whether the upstream still knows it; `None` where it cannot be asked just now.
    fn goes_on(self: Arc<Self>) -> Pin<Box<dyn Future<Output = Option<bool>> + Send>>;

    /// The upstream no longer knows it. Nothing more is sent in it: that would reach the session that has its id now.
    fn lose(&self);
}

/// The ids of the sessions with one upstream.
#[derive(Default)]
pub(crate) struct SessionIds(Mutex<Known>);

#[derive(Default)]
struct Known {
    all: HashMap<HeaderValue, Holder>,
    last: u64,
}

/// The session that has an id, and how many were opened before it.
struct Holder(Weak<dyn HasId>, u64);

impl Holder {
    fn is(&self, session: *const dyn HasId) -> bool {
        std::ptr::addr_eq(self.0.as_ptr(), session)
    }
}

impl SessionIds {
    /// A session was given this id; whether no other one has it.
    pub(super) fn take(&self, id: &HeaderValue, session: &Arc<dyn HasId>) -> bool {
        let mut known = self.lock();
        let other = known.all.get(id).filter(|other| other.0.strong_count() > 0 && !other.is(Arc::as_ptr(session)));
        let is_free = other.is_none();
        if is_free {
            known.last += 1;
            let holder = Holder(Arc::downgrade(session), known.last);
            known.all.insert(id.clone(), holder);
        }
        is_free
    }

    /// This session is over, and its id may be that of another one.
    pub(super) fn free(&self, id: &HeaderValue, session: *const dyn HasId) {
        let mut known = self.lock();
        if known.all.get(id).is_some_and(|holder| holder.is(session)) {
            known.all.remove(id);
        }
    }

    /// The session that has this id.
    pub(super) fn holder(&self, id: &HeaderValue) -> Option<Arc<dyn HasId>> {
        let holder = self.lock().all.get(id).map(|Holder(holder, _)| holder.clone());
        holder?.upgrade()
    }

    /// A session that was opened before the one with this id.
    pub(super) fn older(&self, id: &HeaderValue) -> Option<Arc<dyn HasId>> {
        let older: Vec<_> = {
            let known = self.lock();
            let Holder(_, own) = known.all.get(id)?;
            known.all.values().filter(|Holder(_, at)| at < own).map(|Holder(one, _)| one.clone()).collect()
        };
        // Outside of the lock: the last one that lets go of a session frees its id.
        older.iter().find_map(Weak::upgrade)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
