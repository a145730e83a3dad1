//! A handle on what a principal may see and use.

use super::rights::Rights;
use arc_swap::{ArcSwapOption, Guard};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// What a caller may see and use. The router sees the catalog through it, so lists and calls cannot disagree.
///
/// Clones are the same: another configuration changes what sessions, streams and subscriptions see that are open already.
#[derive(Debug, Clone, Default)]
pub struct Grants(Option<Arc<Held>>);

/// The rights of now. `is_all` is read before: most callers may everything.
#[derive(Debug)]
struct Held {
    is_all: AtomicBool,
    rights: ArcSwapOption<Rights>,
}

/// The rights of one moment.
pub struct RightsNow(Option<Guard<Option<Arc<Rights>>>>);

/// A handle that keeps nothing.
#[derive(Debug, Clone)]
pub struct WeakGrants(Weak<Held>);

impl Grants {
    /// Everything there is, for good.
    pub fn all() -> Self {
        Self(None)
    }

    /// These rights, until others are set; `None` is everything.
    pub fn of(rights: Option<Arc<Rights>>) -> Self {
        let is_all = AtomicBool::new(rights.is_none());
        Self(Some(Arc::new(Held { is_all, rights: ArcSwapOption::new(rights) })))
    }

    /// From now on these are the rights; those that they replace, where they differ.
    pub fn set(&self, rights: Option<Arc<Rights>>) -> Option<Option<Arc<Rights>>> {
        let held = self.0.as_ref()?;
        let before = held.rights.load_full();
        if before == rights {
            return None;
        }
        // Who reads meanwhile finds the one or the other, never more than both.
        held.is_all.store(false, Ordering::SeqCst);
        let is_all = rights.is_none();
        held.rights.store(rights);
        held.is_all.store(is_all, Ordering::SeqCst);
        Some(before)
    }

    /// Whether nothing is kept from the caller, so that lists need no copy of their own.
    pub fn is_all(&self) -> bool {
        self.0.as_ref().is_none_or(|held| held.is_all.load(Ordering::SeqCst))
    }

    /// The rights of now, for a short look.
    pub fn now(&self) -> RightsNow {
        let held = self.0.as_ref().filter(|held| !held.is_all.load(Ordering::SeqCst));
        RightsNow(held.map(|held| held.rights.load()))
    }

    /// The rights of now, to keep; `None` is everything.
    pub fn keep(&self) -> Option<Arc<Rights>> {
        self.0.as_ref()?.rights.load_full()
    }

    /// Whether both are the rights of one principal.
    pub fn is(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        }
    }

    /// Whether both are the same rights now, whosever they are.
    pub fn are_as(&self, other: &Self) -> bool {
        self.is(other) || self.keep() == other.keep()
    }

    /// Whether anything of an upstream may be seen.
    pub fn sees(&self, upstream: &str) -> bool {
        self.now().rights().is_none_or(|rights| rights.sees(upstream))
    }

    /// Whether all of an upstream may be used, also what no list names.
    pub fn has_whole(&self, upstream: &str) -> bool {
        self.now().rights().is_none_or(|rights| rights.has_whole(upstream))
    }

    /// A handle that keeps nothing.
    pub fn downgrade(&self) -> Option<WeakGrants> {
        self.0.as_ref().map(|held| WeakGrants(Arc::downgrade(held)))
    }
}

impl RightsNow {
    /// The rights; `None` is everything.
    pub fn rights(&self) -> Option<&Arc<Rights>> {
        self.0.as_ref()?.as_ref()
    }
}

impl WeakGrants {
    /// The handle, while somebody has it.
    pub fn upgrade(&self) -> Option<Grants> {
        self.0.upgrade().map(|held| Grants(Some(held)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_rights_are_those_of_every_clone() {
        let grants = Grants::of(None);
        let held = grants.clone();
        assert!(held.is_all() && held.sees("a") && held.now().rights().is_none());
        assert_eq!(grants.set(Some(Arc::default())), Some(None));
        assert!(!held.is_all() && !held.sees("a") && !held.has_whole("a"));
        assert_eq!(grants.set(Some(Arc::default())), None, "they are the same");
        assert_eq!(grants.set(None), Some(Some(Arc::default())));
        assert!(held.is_all() && held.has_whole("a"));
        let weak = grants.downgrade().expect("it is a handle");
        assert!(weak.upgrade().is_some_and(|again| again.is(&held)));
        drop((grants, held));
        assert!(weak.upgrade().is_none());
    }
}
