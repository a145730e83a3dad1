//! Everything of one kind that the gateway offers: looked up by public name, listed from encoded bytes.

// What those see of one kind who may not see everything.
mod granted;

use super::build::Known;
use super::encoded::{Encoded, Listed};
use super::entry::Entry;
use super::kind::Kind;
use crate::call::caller::Grants;
use crate::call::caller::rights::Rights;
use crate::memory::account::Kind as Counted;
use crate::memory::budget::{Budget, Charge, Spent, UNCOUNTED};
use crate::protocol::revision::Revision;
use crate::router::names::{ByMember, MemberId};
use crate::runtime::{Keyed, aside};
use crate::upstream::inventory::Inventory;
use granted::{GrantedViews, View};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// What a template takes for each byte of its text, taken apart twice: it may have a part for every third byte.
const TEMPLATE_BYTES: usize = 20;

/// The names of all upstreams of a catalog.
pub(crate) type Names = ByMember<Arc<str>>;

/// All entries of one kind, in order.
pub(crate) struct ItemList {
    kind: Kind,
    /// No other list has the same.
    version: u64,
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
    /// What those see who may not see everything.
    granted: GrantedViews,
    /// The names of the upstreams.
    names: Arc<Names>,
}

impl ItemList {
    /// The entries must have distinct public names.
    pub(crate) fn new(
        kind: Kind,
        entries: Vec<Entry>,
        names: &Arc<Names>,
        (page_size, budget): (usize, &Budget),
    ) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(1);
        let version = COUNT.fetch_add(1, Ordering::Relaxed);
        let index = entries.iter().enumerate().map(|(at, entry)| (entry.public.clone(), at as u32)).collect();
        let (charge, budget, names) = (Charge::default(), budget.clone(), names.clone());
        let (announced, whole, granted) = (Vec::new(), Default::default(), GrantedViews::default());
        Self { kind, version, entries, index, page_size, announced, charge, budget, whole, granted, names }
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

    /// By what it is told from all other lists.
    pub(crate) fn version(&self) -> u64 {
        self.version
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

    /// The entry of a public name, where the caller may use it.
    pub(crate) fn find_for(&self, public: &str, grants: &Grants) -> Option<&Entry> {
        let at = *self.index.get(public)? as usize;
        let now = grants.now();
        let is_seen = now.rights().is_none_or(|rights| self.granted.has(at, rights, || self.seen_by(rights)));
        is_seen.then(|| &self.entries[at])
    }

    /// What these rights let be seen, entry by entry.
    fn seen_by<'a>(&'a self, rights: &'a Rights) -> impl Iterator<Item = bool> + 'a {
        self.entries.iter().map(|entry| {
            // Entries are of upstreams that the catalog has.
            let Some(upstream) = self.names.get(entry.member) else { return false };
            match self.kind {
                Kind::Tools if entry.is_of_gateway => rights.sees(upstream),
                Kind::Tools => rights.has_tool(upstream, &entry.public, || entry.changes_nothing()),
                Kind::Prompts => rights.has_prompt(upstream, &entry.public),
                Kind::Resources => rights.has_resource(upstream, &entry.public),
                Kind::Templates => rights.has_template(upstream, &entry.public),
            }
        })
    }

    /// All entries, in order.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The list in the words of a revision, as grants let it be seen; kept where there is room for it. An error where there is no memory
    /// for it even while it is written.
    pub(crate) fn list(&self, revision: Revision, grants: &Grants) -> Result<Listed<'_>, Spent> {
        let now = grants.now();
        let Some(rights) = now.rights() else { return self.whole(revision) };
        let view = self.granted.of(rights, || self.seen_by(rights));
        if let Some(kept) = view.list(revision) {
            return Ok(Listed::Granted(kept.clone()));
        }
        let encoded = Arc::new(self.encode(revision, Some(&view))?);
        Ok(Listed::Granted(if encoded.is_kept() { view.keep(revision, encoded) } else { encoded }))
    }

    fn whole(&self, revision: Revision) -> Result<Listed<'_>, Spent> {
        let whole = &self.whole[revision as usize];
        if let Some(kept) = whole.get() {
            return Ok(Listed::Whole(kept));
        }
        let encoded = self.encode(revision, None)?;
        Ok(match encoded.is_kept() {
            true => Listed::Whole(whole.get_or_init(|| encoded)),
            false => Listed::Granted(Arc::new(encoded)),
        })
    }

    fn encode(&self, revision: Revision, view: Option<&View>) -> Result<Encoded, Spent> {
        let bytes = self.entries.iter().map(|entry| entry.definition.len()).sum();
        aside(bytes, || Encoded::new(self.kind, || self.of(view), revision, (self.page_size, &self.budget)))
    }

    /// The entries of a view, or all.
    fn of<'a>(&'a self, view: Option<&'a View>) -> impl Iterator<Item = &'a Entry> {
        let entries = self.entries.iter().enumerate();
        entries.filter(move |(at, _)| view.is_none_or(|view| view.has(*at))).map(|(_, entry)| entry)
    }

    /// The entries that these rights admit.
    pub(crate) fn view(&self, rights: Option<&Arc<Rights>>) -> impl Iterator<Item = &Entry> {
        let view = rights.map(|rights| self.granted.of(rights, || self.seen_by(rights)));
        let entries = self.entries.iter().enumerate();
        entries.filter(move |(at, _)| view.as_ref().is_none_or(|view| view.has(*at))).map(|(_, entry)| entry)
    }

    /// Whether a caller with these rights sees the same in both, and no upstream of which it sees anything has said otherwise between
    /// them.
    pub(crate) fn looks_like(&self, other: &Self, rights: Option<&Arc<Rights>>) -> bool {
        let is_said = |member| self.count_of(member) > other.count_of(member);
        let mut said = self.announced.iter().filter(|(member, _)| is_said(*member));
        let sees = |member| rights.is_none() || self.view(rights).any(|entry| entry.member == member);
        !said.any(|(member, _)| sees(*member)) && self.view(rights).eq_by_looks(other.view(rights))
    }

    /// Whether one with these rights sees what one with those sees.
    pub(crate) fn is_same_for(&self, one: Option<&Arc<Rights>>, other: Option<&Arc<Rights>>) -> bool {
        let public = |entry: &Entry| entry.public.clone();
        self.view(one).map(public).eq(self.view(other).map(public))
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
