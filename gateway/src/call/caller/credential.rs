//! What a request is let in with: whose it is, what it opens, and whether it still counts.

use crate::call::caller::{Grants, Principal};
use arc_swap::ArcSwapOption;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio_util::sync::CancellationToken;

/// What a request is let in with, as the layer finds it that asks for it.
#[derive(Debug, Clone)]
pub struct Credential {
    /// Whose it is.
    pub principal: Principal,
    /// What it opens.
    pub grants: Grants,
    /// Whether it still counts.
    pub revocation: Revocation,
}

/// Whether what a request was let in with still counts. Clones are the same: whoever holds one from before the request was read learns of
/// a revocation that came meanwhile.
#[derive(Clone, Default)]
pub struct Revocation(Option<Arc<State>>);

struct State {
    /// Read for each request, without a lock.
    is_revoked: AtomicBool,
    told: CancellationToken,
}

impl Revocation {
    /// Of what is never revoked.
    pub fn never() -> Self {
        Self(None)
    }

    /// Of what counts until it is revoked.
    pub fn possible() -> Self {
        Self(Some(State::fresh()))
    }

    /// From now on it counts no more.
    pub fn revoke(&self) {
        if let Some(state) = &self.0 {
            state.is_revoked.store(true, Ordering::SeqCst);
            state.told.cancel();
        }
    }

    /// Whether it counts no more.
    pub fn is_revoked(&self) -> bool {
        self.0.as_ref().is_some_and(|state| state.is_revoked.load(Ordering::SeqCst))
    }

    /// Whether both are of one credential.
    pub fn is(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        }
    }

    /// Resolves once it counts no more; `None` where that never comes.
    pub fn revoked(&self) -> Option<impl Future<Output = ()> + Send + 'static> {
        self.0.as_ref().map(|state| state.told.clone().cancelled_owned())
    }
}

impl State {
    fn fresh() -> Arc<Self> {
        Arc::new(Self { is_revoked: AtomicBool::new(false), told: CancellationToken::new() })
    }
}

impl fmt::Debug for Revocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Revocation").field(&self.is_revoked()).finish()
    }
}

/// What those are let in with who show no credential, while none is asked for. Clones are the same.
#[derive(Clone)]
pub struct OpenAccess(Arc<ArcSwapOption<State>>);

impl OpenAccess {
    /// The access of a door where a credential may come to be asked for.
    pub fn new() -> Self {
        Self(Arc::new(ArcSwapOption::new(Some(State::fresh()))))
    }

    /// The access of now.
    pub fn now(&self) -> Revocation {
        Revocation(self.0.load_full())
    }

    /// A credential is asked for from now on, or is not: those without one are let in no more, or are again.
    pub fn set(&self, is_open: bool) {
        let now = self.now();
        match is_open {
            false => now.revoke(),
            true if now.is_revoked() => self.0.store(Some(State::fresh())),
            true => {}
        }
    }
}

impl Default for OpenAccess {
    fn default() -> Self {
        Self(Arc::new(ArcSwapOption::new(None)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_revocation_reaches_each_clone_and_nothing_that_came_later() {
        let one = Revocation::possible();
        let (clone, other) = (one.clone(), Revocation::possible());
        assert!(clone.is(&one) && !other.is(&one) && !one.is_revoked());
        one.revoke();
        clone.revoked().expect("it can be").await;
        assert!(clone.is_revoked() && !other.is_revoked());
        let never = Revocation::never();
        never.revoke();
        assert!(!never.is_revoked() && never.revoked().is_none() && never.is(&Revocation::never()));
    }

    #[test]
    fn who_was_let_in_while_none_was_asked_for_is_not_let_in_by_the_next_time() {
        let open = OpenAccess::new();
        let first = open.now();
        open.set(true);
        assert!(open.now().is(&first), "nothing has changed");
        open.set(false);
        assert!(first.is_revoked() && open.now().is_revoked());
        open.set(true);
        assert!(first.is_revoked() && !open.now().is_revoked());
    }
}
