//! Everything of one kind that the gateway offers: looked up by public name, listed from encoded bytes.

use super::encoded::Encoded;
use super::entry::Entry;
use super::kind::Kind;
use crate::call::caller::Grants;
use crate::protocol::revision::Revision;
use crate::runtime::{Keyed, aside};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// So many lists of callers with grants are kept encoded; more are encoded on each request.
const INTERNED_MAX: usize = 256;

/// All entries of one kind, in order.
pub(crate) struct ItemList {
    kind: Kind,
    entries: Vec<Entry>,
    index: HashMap<Arc<str>, u32, Keyed>,
    page_size: usize,
    /// The whole list by revision.
    whole: [OnceLock<Encoded>; Revision::ALL.len()],
    /// Lists through grants.
    granted: Mutex<HashMap<(Revision, Grants), Arc<Encoded>>>,
}

/// An encoded list, wherever it is kept.
pub(crate) enum Listed<'a> {
    Whole(&'a Encoded),
    Granted(Arc<Encoded>),
}

impl Listed<'_> {
    /// The list itself.
    pub(crate) fn encoded(&self) -> &Encoded {
        match self {
            Self::Whole(encoded) => encoded,
            Self::Granted(encoded) => encoded,
        }
    }
}

impl ItemList {
    /// The entries must have distinct public names.
    pub(crate) fn new(kind: Kind, entries: Vec<Entry>, page_size: usize) -> Self {
        let index = entries.iter().enumerate().map(|(at, entry)| (entry.public.clone(), at as u32)).collect();
        Self { kind, entries, index, page_size, whole: Default::default(), granted: Mutex::default() }
    }

    /// The entry of a public name.
    pub(crate) fn find(&self, public: &str) -> Option<&Entry> {
        self.index.get(public).map(|at| &self.entries[*at as usize])
    }

    /// All entries, in order.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The list in the words of a revision, as grants let it be seen.
    pub(crate) fn list(&self, revision: Revision, grants: &Grants) -> Listed<'_> {
        if grants.is_all() {
            return Listed::Whole(self.whole[revision as usize].get_or_init(|| self.encode(revision, grants)));
        }
        let key = (revision, grants.clone());
        if let Some(kept) = self.interned().get(&key) {
            return Listed::Granted(kept.clone());
        }
        let encoded = Arc::new(self.encode(revision, grants));
        let mut interned = self.interned();
        if interned.len() < INTERNED_MAX {
            interned.insert(key, encoded.clone());
        }
        Listed::Granted(encoded)
    }

    fn encode(&self, revision: Revision, grants: &Grants) -> Encoded {
        let bytes = self.entries.iter().map(|entry| entry.definition.len()).sum();
        aside(bytes, || Encoded::new(self.kind, self.view(grants), revision, self.page_size))
    }

    fn interned(&self) -> std::sync::MutexGuard<'_, HashMap<(Revision, Grants), Arc<Encoded>>> {
        self.granted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The entries that grants admit.
    pub(crate) fn view<'a>(&'a self, grants: &'a Grants) -> impl Iterator<Item = &'a Entry> {
        self.entries.iter().filter(move |entry| grants.admits(&entry.public))
    }

    /// Whether a caller with these grants sees the same in both.
    pub(crate) fn looks_like(&self, other: &Self, grants: &Grants) -> bool {
        self.view(grants).eq_by_looks(other.view(grants))
    }

    /// Whether nothing differs, not even whose something is.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.entries.len() == other.entries.len() && self.entries.iter().zip(&other.entries).all(|(a, b)| a.is(b))
    }
}

trait EqByLooks<'a>: Iterator<Item = &'a Entry> + Sized {
    fn eq_by_looks(mut self, mut other: impl Iterator<Item = &'a Entry>) -> bool {
        loop {
            match (self.next(), other.next()) {
                (None, None) => return true,
                (Some(a), Some(b)) if a.looks_like(b) => {}
                _ => return false,
            }
        }
    }
}

impl<'a, I: Iterator<Item = &'a Entry>> EqByLooks<'a> for I {}
