//! What the gateway offers: the merged inventories, an immutable snapshot that is swapped whole.

use super::config::{Naming, Unknown};
use super::entry::Entry;
use super::kind::Kind;
use super::ledger::Ledger;
use super::namespace;
use super::owner::Member;
use super::shelf::Shelf;
use super::statuses::Statuses;
use super::stock;
use super::template::Template;
use super::uri::{Marked, origin};
use super::wrap::Wrap;
use crate::call::Grants;
use crate::protocol::Object;
use crate::upstream::Inventory;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// The merged inventories. Deterministic: configuration order, then each upstream's own.
pub(super) struct Catalog {
    /// How many catalogs were in force before this one.
    pub(super) version: u64,
    /// All upstreams, known or not, in configuration order.
    pub(super) members: Arc<[Member]>,
    /// What each of them offers; `None` while that was never known.
    pub(super) known: Vec<Option<Arc<Inventory>>>,
    pub(super) rules: Arc<Rules>,
    shelves: [Arc<Shelf>; 4],
    templates: Vec<Template>,
    marked: Vec<Option<Marked>>,
    /// Whose pages are that tools name and no list does, and what they are called there.
    pages: HashMap<Arc<str>, (usize, Arc<str>)>,
    /// Who lists URIs of a scheme and authority; `None` where several do.
    origins: HashMap<Box<str>, Option<usize>>,
    /// What nobody can ask for, since an earlier upstream has the same.
    pub(super) hidden: Vec<(usize, Arc<str>)>,
    /// What the gateway says of itself to handshake clients and to stateless ones, once it was asked for.
    pub(super) discovered: [OnceLock<Object>; 2],
}

/// What a catalog is made by.
pub(super) struct Rules {
    pub(super) naming: Naming,
    pub(super) page_size: usize,
    /// Put before the instructions of the upstreams.
    pub(super) instructions: String,
    pub(super) unknown: Unknown,
    pub(super) wrap: Wrap,
    /// Who is told how tasks stand.
    pub(super) statuses: Arc<Statuses>,
    /// Who was given which task.
    pub(super) ledger: Ledger,
}

/// Whose a URI is, and what it is called there.
pub(super) struct Found<'a> {
    pub(super) member: usize,
    pub(super) own: Cow<'a, str>,
}

impl Catalog {
    /// Merges what is known now; what did not change is taken over with its encoded lists.
    pub(super) fn build(members: &Arc<[Member]>, rules: &Arc<Rules>, before: Option<&Self>) -> Self {
        let known = members.iter().map(|member| member.inventory.borrow().clone()).collect();
        Self::of(known, members, rules, before)
    }

    /// Merges what each of them offers; what is as it was before is taken over with its encoded lists.
    pub(super) fn of(
        known: Vec<Option<Arc<Inventory>>>,
        members: &Arc<[Member]>,
        rules: &Arc<Rules>,
        before: Option<&Self>,
    ) -> Self {
        let stock = stock::take(members, &known, &rules.naming);
        let mut origins = HashMap::new();
        for entry in &stock.entries[Kind::Resources as usize] {
            if let Some(origin) = origin(&entry.own) {
                let owner = origins.entry(origin.into()).or_insert(Some(entry.member));
                *owner = owner.filter(|owner| *owner == entry.member);
            }
        }
        let templates = stock.entries[Kind::Templates as usize].iter().map(|e| Template::parse(&e.public)).collect();
        let mut kinds = Kind::ALL.into_iter();
        let shelves = stock.entries.map(|entries| {
            let kind = kinds.next().expect("there are as many kinds as shelves");
            let shelf = Shelf::new(kind, entries, rules.page_size);
            let same = before.map(|before| before.shelf(kind)).filter(|old| old.is(&shelf));
            same.cloned().unwrap_or_else(|| Arc::new(shelf))
        });
        Self {
            version: before.map_or(0, |before| before.version + 1),
            members: members.clone(),
            known,
            rules: rules.clone(),
            shelves,
            templates,
            marked: stock.marked,
            pages: stock.pages,
            origins,
            hidden: stock.hidden,
            discovered: Default::default(),
        }
    }

    /// All of one kind.
    pub(super) fn shelf(&self, kind: Kind) -> &Arc<Shelf> {
        &self.shelves[kind as usize]
    }

    /// The entry of a public name, where the caller may use it.
    pub(super) fn find(&self, kind: Kind, public: &str, grants: &Grants) -> Option<&Entry> {
        self.shelf(kind).find(public).filter(|entry| grants.admits(&entry.public))
    }

    /// Whose a URI is: by the lists, by the templates, by who has no prefix, by who lists its like.
    pub(super) fn find_uri<'a>(&'a self, uri: &'a str, grants: &Grants) -> Option<Found<'a>> {
        if let Some(entry) = self.shelf(Kind::Resources).find(uri) {
            return grants.admits(uri).then_some(Found { member: entry.member, own: Cow::Borrowed(&*entry.own) });
        }
        if let Some((member, own)) = self.pages.get(uri) {
            return grants.admits(uri).then_some(Found { member: *member, own: Cow::Borrowed(&**own) });
        }
        let templates = self.shelf(Kind::Templates).entries().iter().zip(&self.templates);
        let mut matching = templates.filter(|(_, template)| template.matches(uri)).map(|(entry, _)| entry);
        if let Some(entry) = matching.find(|entry| grants.admits(uri) || grants.admits(&entry.public)) {
            let is_marked = entry.public != entry.own;
            let own = is_marked.then(|| self.unmark(entry.member, uri)).flatten();
            return Some(Found { member: entry.member, own: own.map_or(Cow::Borrowed(uri), Cow::Owned) });
        }
        if !grants.admits(uri) {
            return None;
        }
        let unmarked = (0..self.members.len()).find_map(|member| Some((member, self.unmark(member, uri)?)));
        if let Some((member, own)) = unmarked {
            return Some(Found { member, own: Cow::Owned(own) });
        }
        let alike = || origin(uri).and_then(|origin| self.origins.get(origin).copied().flatten());
        self.bare().or_else(alike).map(|member| Found { member, own: Cow::Borrowed(uri) })
    }

    /// The own form of a URI that bears an upstream's mark.
    fn unmark(&self, member: usize, uri: &str) -> Option<String> {
        self.marked[member].as_ref()?.tag.unmark(uri)
    }

    /// Which URIs of an upstream are marked, where any are.
    pub(super) fn marked(&self, member: usize) -> Option<&Marked> {
        self.marked[member].as_ref()
    }

    /// The public form of an upstream's own URI.
    pub(super) fn publish(&self, member: usize, own: &Arc<str>) -> Arc<str> {
        self.marked(member).and_then(|marked| marked.publish(own)).map_or_else(|| own.clone(), Into::into)
    }

    /// Whether everything passes as it is.
    pub(super) fn is_transparent(&self) -> bool {
        self.rules.naming.is_transparent(self.members.len())
    }

    /// The one upstream without a prefix: what nobody is known to own goes to it.
    pub(super) fn bare(&self) -> Option<usize> {
        let mut bare = self.members.iter().enumerate().filter(|(_, m)| self.is_bare(m)).map(|(at, _)| at);
        bare.next().filter(|_| bare.next().is_none())
    }

    fn is_bare(&self, member: &Member) -> bool {
        namespace::is_bare(&self.rules.naming, member.owner.prefix())
    }

    /// Upstreams that were never seen and whose a name could be.
    pub(super) fn unseen_owners(&self, public: &str) -> impl Iterator<Item = usize> {
        self.unseen().filter(move |at| self.may_own(*at, public))
    }

    /// Upstreams of which not all could be read the last time, and whose a name could be.
    pub(super) fn partly_seen_owners(&self, public: &str) -> impl Iterator<Item = usize> {
        let seen = self.known.iter().enumerate().filter(|(_, known)| known.is_some()).map(|(at, _)| at);
        seen.filter(move |at| !self.members[*at].owner.is_whole() && self.may_own(*at, public))
    }

    fn may_own(&self, at: usize, public: &str) -> bool {
        let member = &self.members[at];
        let rest = public.strip_prefix(member.owner.prefix());
        self.is_bare(member) || rest.is_some_and(|rest| rest.starts_with(&*self.rules.naming.separator))
    }

    /// Whether an upstream was never seen and may be soon.
    pub(super) fn is_awaited(&self, at: usize) -> bool {
        self.known[at].is_none() && self.members[at].is_coming()
    }

    /// Upstreams that were never seen.
    pub(super) fn unseen(&self) -> impl Iterator<Item = usize> {
        self.known.iter().enumerate().filter(|(_, known)| known.is_none()).map(|(at, _)| at)
    }

    /// The kinds in which a caller's view differs.
    pub(super) fn changes(&self, before: &Self, grants: &Grants) -> impl Iterator<Item = Kind> {
        Kind::ALL.into_iter().filter(move |kind| {
            let (new, old) = (self.shelf(*kind), before.shelf(*kind));
            !Arc::ptr_eq(new, old) && !new.looks_like(old, grants)
        })
    }

    /// Whether nothing differs, so that it need not be swapped.
    pub(super) fn is(&self, before: &Self) -> bool {
        let same = |(a, b): (&Option<Arc<Inventory>>, &Option<Arc<Inventory>>)| match (a, b) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, None) => true,
            _ => false,
        };
        self.known.len() == before.known.len() && self.known.iter().zip(&before.known).all(same)
    }
}
