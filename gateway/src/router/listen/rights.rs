//! The rights of a listener: those of its call, or those that its session has by now.

use crate::call::caller::{Caller, ClientSession, SessionRights};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The rights of a listener: those of its call, or those that its session has by now.
pub(super) struct ListenerRights {
    session: Option<Arc<ClientSession>>,
    /// The rights by which it was told last.
    seen: Mutex<Arc<SessionRights>>,
}

impl ListenerRights {
    /// The rights of a caller.
    pub(super) fn of(caller: &Caller) -> Self {
        Self { session: caller.tenant.clone(), seen: Mutex::new(Arc::new(caller.rights())) }
    }

    /// The rights of now: nothing is told beyond them.
    pub(super) fn now(&self) -> Arc<SessionRights> {
        self.session.as_ref().and_then(|session| session.rights()).unwrap_or_else(|| self.seen())
    }

    /// The rights by which it was told last.
    pub(super) fn seen(&self) -> Arc<SessionRights> {
        self.lock().clone()
    }

    /// Takes over the rights of now; those before and those of now, where they are others.
    pub(super) fn follow(&self) -> Option<(Arc<SessionRights>, Arc<SessionRights>)> {
        let now = self.session.as_ref()?.rights()?;
        let mut seen = self.lock();
        (!seen.is(&now)).then(|| (mem::replace(&mut *seen, now.clone()), now))
    }

    fn lock(&self) -> MutexGuard<'_, Arc<SessionRights>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
