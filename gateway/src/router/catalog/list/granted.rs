//! What those see of one kind who may not see everything: found once for each set of rights, and then a bit for each entry.

use crate::call::caller::rights::Rights;
use crate::protocol::revision::Revision;
use crate::router::catalog::encoded::Encoded;
use arc_swap::ArcSwap;
use std::sync::{Arc, OnceLock};

/// So many sets of rights are remembered with what they see; at one more, all are found anew.
const VIEWS_MAX: usize = 256;

/// The views of one list. A call reads them without a lock.
#[derive(Default)]
pub(super) struct GrantedViews(ArcSwap<Vec<Arc<View>>>);

/// What one set of rights lets be seen.
pub(super) struct View {
    rights: Arc<Rights>,
    /// A bit for each entry.
    seen: Box<[u64]>,
    /// The list by revision, as it is written.
    lists: [OnceLock<Arc<Encoded>>; Revision::ALL.len()],
}

impl GrantedViews {
    /// Whether these rights let an entry be seen; `found` says that of each, where it was not asked yet.
    pub(super) fn has<I: Iterator<Item = bool>>(
        &self,
        at: usize,
        rights: &Arc<Rights>,
        found: impl FnOnce() -> I,
    ) -> bool {
        match self.0.load().iter().find(|view| Arc::ptr_eq(&view.rights, rights)) {
            Some(view) => view.has(at),
            None => self.of(rights, found).has(at),
        }
    }

    /// The view of these rights.
    pub(super) fn of<I: Iterator<Item = bool>>(&self, rights: &Arc<Rights>, found: impl FnOnce() -> I) -> Arc<View> {
        let is_theirs = |view: &&Arc<View>| Arc::ptr_eq(&view.rights, rights);
        if let Some(view) = self.0.load().iter().find(is_theirs) {
            return view.clone();
        }
        let view = Arc::new(View::new(rights, found()));
        let mut kept = view.clone();
        self.0.rcu(|views| {
            let known = views.iter().find(is_theirs);
            kept = known.unwrap_or(&view).clone();
            match known {
                Some(_) => views.as_ref().clone(),
                None if views.len() >= VIEWS_MAX => vec![view.clone()],
                None => views.iter().chain([&view]).cloned().collect(),
            }
        });
        kept
    }
}

impl View {
    fn new(rights: &Arc<Rights>, found: impl Iterator<Item = bool>) -> Self {
        let mut seen = Vec::new();
        for (at, is_seen) in found.enumerate() {
            if at % 64 == 0 {
                seen.push(0);
            }
            seen[at / 64] |= u64::from(is_seen) << (at % 64);
        }
        Self { rights: rights.clone(), seen: seen.into(), lists: Default::default() }
    }

    /// Whether an entry is seen.
    pub(super) fn has(&self, at: usize) -> bool {
        self.seen.get(at / 64).is_some_and(|bits| bits >> (at % 64) & 1 == 1)
    }

    /// The list in the words of a revision, where it is kept.
    pub(super) fn list(&self, revision: Revision) -> Option<&Arc<Encoded>> {
        self.lists[revision as usize].get()
    }

    /// Keeps the list, where none is kept yet; the one that is kept.
    pub(super) fn keep(&self, revision: Revision, list: Arc<Encoded>) -> Arc<Encoded> {
        self.lists[revision as usize].get_or_init(|| list).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_is_found_once_and_there_is_an_end_to_how_many_are_kept() {
        let views = GrantedViews::default();
        let rights = Arc::new(Rights::default());
        let bits = || (0..130).map(|at| at % 3 == 0);
        assert!((0..130).all(|at| views.has(at, &rights, bits) == (at % 3 == 0)) && !views.has(130, &rights, bits));
        assert!(views.has(3, &rights, || -> std::iter::Empty<bool> { panic!("it was found before") }));
        for _ in 0..VIEWS_MAX * 3 {
            views.of(&Arc::default(), bits);
            assert!(views.0.load().len() <= VIEWS_MAX);
        }
    }
}
