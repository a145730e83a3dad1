//! Everything of one kind that the gateway offers: looked up by public name, listed from encoded bytes.

use super::build::Known;
use super::encoded::Encoded;
use super::entry::Entry;
use super::kind::Kind;
use crate::call::caller::Grants;
use crate::memory::account::Kind as Counted;
use crate::memory::budget::{Budget, Charge, Spent, UNCOUNTED};
use crate::protocol::revision::Revision;
use crate::router::names::MemberId;
use crate::runtime::{Keyed, aside};
use crate::upstream::inventory::Inventory;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// So many lists of callers with grants are kept encoded; more are encoded on each request.
const INTERNED_MAX: usize = 256;
/// What a template takes for each byte of its text, taken apart twice: it may have a part for every third byte.
const TEMPLATE_BYTES: usize = 20;

/// All entries of one kind, in order.
pub(crate) struct ItemList {
    kind: Kind,
    entries: Vec<Entry>,
    index: HashMap<Arc<str>, u32, Keyed>,
    page_size: usize,
    /// How often each upstream has said that this list of it changed, of those that ever did.
    announced: Vec<(MemberId, u64)>,
    /// What the entries take, and where encoded lists are counted.
    charge: Charge,
    budget: Budget,
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
    pub(crate) fn new(kind: Kind, entries: Vec<Entry>, page_size: usize, budget: &Budget) -> Self {
        let index = entries.iter().enumerate().map(|(at, entry)| (entry.public.clone(), at as u32)).collect();
        let (charge, budget) = (Charge::default(), budget.clone());
        let (announced, whole, granted) = (Vec::new(), Default::default(), Mutex::default());
        Self { kind, entries, index, page_size, announced, charge, budget, whole, granted }
    }

    /// The same, after the upstreams have said so often that it changed.
    pub(crate) fn announced(mut self, known: &Known) -> Self {
        let count = |inventory: &Inventory| match self.kind {
            Kind::Tools => inventory.announced.tools,
            // One notice is for both.
            Kind::Resources | Kind::Templates => inventory.announced.resources,
            Kind::Prompts => inventory.announced.prompts,
        };
        let counts = known.iter().filter_map(|(id, inventory)| Some((id, count(inventory.as_ref()?))));
        self.announced = counts.filter(|(_, count)| *count > 0).collect();
        self
    }

    /// What its entries take of the budget beside the inventories.
    pub(crate) fn weight(&self) -> usize {
        let templates = if self.kind == Kind::Templates { TEMPLATE_BYTES } else { 0 };
        self.entries.iter().map(|entry| entry.weight() + templates * entry.public.len()).sum()
    }

    /// From now on what its entries take is counted; the inventories that they stand for have found room.
    pub(crate) fn count(&mut self) {
        let weight = self.weight();
        if weight > UNCOUNTED {
            self.charge = self.budget.count(Counted::List, weight);
        }
    }

    /// The entry of a public name.
    pub(crate) fn find(&self, public: &str) -> Option<&Entry> {
        self.index.get(public).map(|at| &self.entries[*at as usize])
    }

    /// All entries, in order.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The list in the words of a revision, as grants let it be seen; kept where there is room for it. An error where there is no memory
    /// for it even while it is written.
    pub(crate) fn list(&self, revision: Revision, grants: &Grants) -> Result<Listed<'_>, Spent> {
        let whole = &self.whole[revision as usize];
        if grants.is_all() {
            if let Some(kept) = whole.get() {
                return Ok(Listed::Whole(kept));
            }
            let encoded = self.encode(revision, grants)?;
            return Ok(match encoded.is_kept() {
                true => Listed::Whole(whole.get_or_init(|| encoded)),
                false => Listed::Granted(Arc::new(encoded)),
            });
        }
        let key = (revision, grants.clone());
        if let Some(kept) = self.interned().get(&key) {
            return Ok(Listed::Granted(kept.clone()));
        }
        let encoded = Arc::new(self.encode(revision, grants)?);
        let mut interned = self.interned();
        if encoded.is_kept() && interned.len() < INTERNED_MAX {
            interned.insert(key, encoded.clone());
        }
        Ok(Listed::Granted(encoded))
    }

    fn encode(&self, revision: Revision, grants: &Grants) -> Result<Encoded, Spent> {
        let bytes = self.entries.iter().map(|entry| entry.definition.len()).sum();
        aside(bytes, || Encoded::new(self.kind, || self.view(grants), revision, (self.page_size, &self.budget)))
    }

    fn interned(&self) -> std::sync::MutexGuard<'_, HashMap<(Revision, Grants), Arc<Encoded>>> {
        self.granted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The entries that grants admit.
    pub(crate) fn view<'a>(&'a self, grants: &'a Grants) -> impl Iterator<Item = &'a Entry> {
        self.entries.iter().filter(move |entry| grants.admits(&entry.public))
    }

    /// Whether a caller with these grants sees the same in both, and no upstream of which it sees anything has said otherwise between
    /// them.
    pub(crate) fn looks_like(&self, other: &Self, grants: &Grants) -> bool {
        let is_said = |member| self.count_of(member) > other.count_of(member);
        let mut said = self.announced.iter().filter(|(member, _)| is_said(*member));
        let sees = |member| grants.is_all() || self.view(grants).any(|entry| entry.member == member);
        !said.any(|(member, _)| sees(*member)) && self.view(grants).eq_by_looks(other.view(grants))
    }

    fn count_of(&self, member: MemberId) -> u64 {
        self.announced.iter().find(|(id, _)| *id == member).map_or(0, |(_, count)| *count)
    }

    /// Whether nothing differs, not even whose something is.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.announced == other.announced
            && self.entries.len() == other.entries.len()
            && self.entries.iter().zip(&other.entries).all(|(a, b)| a.is(b))
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
