//! What the gateway offers: the merged inventories, an immutable snapshot that is swapped whole.

use super::build;
use super::build::Known;
use super::entry::Entry;
use super::kind::Kind;
use super::list::ItemList;
use super::owner::Member;
use crate::call::caller::Grants;
use crate::call::caller::rights::Rights;
use crate::memory::StandingCharge;
use crate::memory::budget::{Budget, Spent};
use crate::metrics::catalog as metrics;
use crate::metrics::edges::tools_offered;
use crate::protocol::revision::Era;
use crate::protocol::value::Object;
use crate::router::approval::why::Unapproved;
use crate::router::config::{Naming, Pin, Pins, Unknown};
use crate::router::names::uri::{Marked, authority, origin};
use crate::router::names::{ByMember, Looks, MemberId, Template, namespace};
use crate::router::tasks::{GrantedTasks, TaskIds, TaskNotifier};
use crate::upstream::inventory::Inventory;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// What an item costs when inventories are merged, in bytes that are read in the same time.
const ITEM_COST: usize = 1024;

/// The merged inventories. Deterministic: configuration order, then each upstream's own.
pub(crate) struct Catalog {
    /// How many catalogs were in force before this one.
    pub(crate) version: u64,
    /// All upstreams, known or not, in configuration order.
    pub(crate) members: Members,
    /// What each of them offers; `None` while that was never known.
    pub(crate) known: Known,
    pub(crate) rules: Arc<Rules>,
    shelves: [Arc<ItemList>; 4],
    /// All templates with the place of each in its list: the more literal ones first, then in configuration order.
    templates: Vec<(usize, Template)>,
    marked: ByMember<Option<Marked>>,
    /// Whose pages are that tools name and no list does, and what they are called there.
    pages: HashMap<Arc<str>, (MemberId, Arc<str>)>,
    /// Who lists URIs of a scheme and authority; `None` where several do.
    origins: HashMap<Box<str>, Option<MemberId>>,
    /// What nobody can ask for, since an earlier upstream has the same.
    pub(crate) hidden: Vec<(MemberId, Arc<str>)>,
    /// The tools that nobody has approved as they are, where that is asked for.
    pub(crate) unapproved: Vec<Unapproved>,
    /// What the gateway says of itself to handshake clients and to stateless ones, once it was asked for.
    pub(crate) discovered: [OnceLock<Object>; 2],
    /// What a session's view takes.
    standing: Option<StandingCharge>,
}

/// All upstreams, in configuration order: the same through many catalogs.
pub(crate) type Members = Arc<ByMember<Arc<Member>>>;

/// What a catalog is made by.
#[derive(Clone)]
pub(crate) struct Rules {
    pub(crate) naming: Naming,
    pub(crate) page_size: usize,
    /// Put before the instructions of the upstreams.
    pub(crate) instructions: String,
    pub(crate) unknown: Unknown,
    /// What is asked of tools before clients are offered them.
    pub(crate) pins: Pins,
    pub(crate) wrap: Arc<TaskIds>,
    /// Who is told how tasks stand.
    pub(crate) statuses: Arc<TaskNotifier>,
    /// Who was given which task.
    pub(crate) ledger: Arc<GrantedTasks>,
    /// What lists are counted in.
    pub(crate) budget: Budget,
}

/// Which catalog it is, and which lists it has: two catalogs share a list that is the same in both.
#[derive(Clone, Copy, Default)]
pub(crate) struct Versions {
    pub(crate) catalog: u64,
    pub(crate) lists: [u64; 4],
}

/// What merging these inventories costs, in bytes of work.
pub(crate) fn weight(known: &Known) -> usize {
    known.values().flatten().map(|inventory| inventory.counts().iter().sum::<usize>() * ITEM_COST).sum()
}

/// Whose a URI is, and what it is called there.
pub(crate) struct Found<'a> {
    pub(crate) member: MemberId,
    pub(crate) own: Cow<'a, str>,
}

impl Catalog {
    /// Merges what is known now; what did not change is taken over with its encoded lists.
    pub(crate) fn build(members: &Members, rules: &Arc<Rules>, before: Option<&Self>) -> Self {
        let known = members.map(|member| member.inventory.borrow().clone());
        Self::of(known, members, rules, before)
    }

    /// Merges what each of them offers; what is as it was before is taken over with its encoded lists.
    pub(crate) fn of(known: Known, members: &Members, rules: &Arc<Rules>, before: Option<&Self>) -> Self {
        let stock = build::take(members, &known, (&rules.naming, &rules.pins));
        let mut origins = HashMap::new();
        for entry in &stock.entries[Kind::Resources as usize] {
            if let Some(origin) = origin(&entry.own) {
                let owner = origins.entry(origin.into()).or_insert(Some(entry.member));
                *owner = owner.filter(|owner| *owner == entry.member);
            }
        }
        let templates = stock.entries[Kind::Templates as usize].iter().map(|e| Template::parse(&e.public));
        let mut templates: Vec<_> = templates.enumerate().collect();
        templates.sort_by_cached_key(|(_, template)| Reverse(template.literalness()));
        let names = Arc::new(members.map(|member| member.owner.name().clone()));
        let mut kinds = Kind::ALL.into_iter();
        let shelves = stock.entries.map(|entries| {
            let kind = kinds.next().expect("there are as many kinds as shelves");
            let shelf = ItemList::new(kind, entries, &names, (rules.page_size, &rules.budget)).announced(&known);
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
            unapproved: stock.unapproved,
            discovered: Default::default(),
            standing: None,
        }
    }

    /// The same as a later version than this one, too.
    pub(crate) fn after(self, version: u64) -> Self {
        Self { version: self.version.max(version + 1), ..self }
    }

    /// From now on what it keeps beside the inventories, and shares with no other catalog, is counted: others make room.
    pub(crate) fn counted(mut self) -> Self {
        self.shelves.iter_mut().filter_map(Arc::get_mut).for_each(ItemList::count);
        self
    }

    /// Has the metrics show what of it nobody can ask for, and the tools that can be called.
    pub(crate) fn shows_itself(&self) {
        let tools = || self.known.values().flatten().map(|inventory| &inventory.tools);
        let offered: usize = tools().map(|tools| tools.len()).sum();
        let left_out = tools().fold([0, 0], |[filtered, unusable], tools| {
            let [more, other] = tools.left_out_by();
            [filtered + more, unusable + other]
        });
        let held = if self.holds() { self.unapproved.len() } else { 0 };
        let contested = offered.saturating_sub(self.shelf(Kind::Tools).entries().len() + held);
        metrics::hidden(contested, left_out, held);
        metrics::unapproved(self.unapproved.len());
        metrics::conflicts(self.hidden.len());
        let named = self.shelf(Kind::Tools).entries().iter();
        tools_offered(named.map(|tool| (&**self.members[tool.member].owner.name(), &*tool.public)));
    }

    /// As [`Self::counted`], for one session's view, in the part of the budget that lists have; an error where it has no room there.
    pub(crate) fn standing(mut self, budget: &Budget) -> Result<Self, Spent> {
        let weights = self.shelves.iter_mut().filter_map(Arc::get_mut).map(|shelf| shelf.weight());
        self.standing = Some(budget.stand_listed(weights.sum())?);
        Ok(self)
    }

    /// All of one kind.
    pub(crate) fn shelf(&self, kind: Kind) -> &Arc<ItemList> {
        &self.shelves[kind as usize]
    }

    /// The entry of a public name, where the caller may use it.
    pub(crate) fn find(&self, kind: Kind, public: &str, grants: &Grants) -> Option<&Entry> {
        self.shelf(kind).find_for(public, grants)
    }

    /// Whether tools that nobody has approved are kept from clients.
    pub(crate) fn holds(&self) -> bool {
        self.rules.pins.pin == Pin::Hold
    }

    /// The tool of a public name that is kept from clients until somebody approves it.
    pub(crate) fn held(&self, public: &str) -> Option<&Unapproved> {
        self.unapproved.iter().filter(|_| self.holds()).find(|tool| tool.public.as_deref() == Some(public))
    }

    /// Whose a URI is: that of whoever lists it, or whose mark it bears, or who alone lists URIs of its origin, or whose template
    /// it may come from, the most literal first; else that of who has no prefix, or who lists its like.
    pub(crate) fn find_uri<'a>(&'a self, uri: &'a str, grants: &Grants) -> Option<Found<'a>> {
        self.find_uri_within(uri, grants, &mut Looks::default())
    }

    /// As [`Self::find_uri`], for one of many. What the caller may not see is passed over, as if it were not there.
    pub(crate) fn find_uri_within<'a>(&'a self, uri: &'a str, grants: &Grants, looks: &mut Looks) -> Option<Found<'a>> {
        let may = |member: &MemberId| self.may_read(*member, uri, grants);
        if let Some(entry) = self.shelf(Kind::Resources).find(uri).filter(|entry| may(&entry.member)) {
            return Some(Found { member: entry.member, own: Cow::Borrowed(&*entry.own) });
        }
        if let Some((member, own)) = self.pages.get(uri).filter(|(member, _)| may(member)) {
            return Some(Found { member: *member, own: Cow::Borrowed(&**own) });
        }
        let of = |origin: Option<&str>| self.origins.get(origin?).copied().flatten().filter(may);
        let mut marked = self.marked.iter().filter(|(member, _)| may(member));
        let unmarked = marked.find_map(|(member, marked)| Some((member, marked.as_ref()?.tag.unmark(uri)?)));
        if let Some((member, own)) = unmarked {
            return Some(Found { member, own: Cow::Owned(own) });
        }
        if let Some(member) = of(authority(uri)) {
            return Some(Found { member, own: Cow::Borrowed(uri) });
        }
        let entries = self.shelf(Kind::Templates).entries();
        let matching = self.templates.iter().filter(|(_, template)| template.matches(uri, looks));
        let mut matching = matching.map(|(at, _)| &entries[*at]);
        if let Some(entry) = matching.find(|entry| may(&entry.member)) {
            let is_marked = entry.public != entry.own;
            let own = is_marked.then(|| self.unmark(entry.member, uri)).flatten();
            return Some(Found { member: entry.member, own: own.map_or(Cow::Borrowed(uri), Cow::Owned) });
        }
        let bare = self.bare().filter(may);
        bare.or_else(|| of(origin(uri))).map(|member| Found { member, own: Cow::Borrowed(uri) })
    }

    /// Whether a caller may read a resource of an upstream.
    pub(crate) fn may_read(&self, member: MemberId, uri: &str, grants: &Grants) -> bool {
        let now = grants.now();
        now.rights().is_none_or(|rights| rights.has_resource(self.members[member].owner.name(), uri))
    }

    /// Whether a caller may see anything of an upstream.
    pub(crate) fn sees(&self, member: MemberId, grants: &Grants) -> bool {
        grants.is_all() || grants.sees(self.members[member].owner.name())
    }

    /// What is known of the upstreams of which a caller may see anything.
    pub(crate) fn known_to<'a>(
        &'a self,
        grants: &'a Grants,
    ) -> impl Iterator<Item = (MemberId, Option<&'a Arc<Inventory>>)> + Clone {
        let known = self.known.iter().filter(|(id, _)| self.sees(*id, grants));
        known.map(|(id, known)| (id, known.as_ref()))
    }

    /// All templates with whose they are and what clients call them.
    pub(crate) fn templates(&self) -> impl Iterator<Item = (MemberId, &str, &Template)> {
        let entries = self.shelf(Kind::Templates).entries();
        self.templates.iter().map(|(at, template)| (entries[*at].member, &*entries[*at].public, template))
    }

    /// The own form of a URI that bears an upstream's mark.
    fn unmark(&self, member: MemberId, uri: &str) -> Option<String> {
        self.marked(member)?.tag.unmark(uri)
    }

    /// Which URIs of an upstream are marked, where any are.
    pub(crate) fn marked(&self, member: MemberId) -> Option<&Marked> {
        self.marked.get(member)?.as_ref()
    }

    /// The public form of an upstream's own URI.
    pub(crate) fn publish(&self, member: MemberId, own: &Arc<str>) -> Arc<str> {
        self.marked(member)
            .and_then(|marked| marked.publish(own, &mut Looks::default()))
            .map_or_else(|| own.clone(), Into::into)
    }

    /// The upstream through which everything passes as it is, where there is one.
    pub(crate) fn transparent(&self) -> Option<MemberId> {
        self.members.ids().next().filter(|_| self.is_transparent())
    }

    /// Whether everything passes as it is.
    pub(crate) fn is_transparent(&self) -> bool {
        self.rules.naming.is_transparent(self.members.len())
    }

    /// The one upstream without a prefix: what nobody is known to own goes to it.
    pub(crate) fn bare(&self) -> Option<MemberId> {
        let mut bare = self.members.iter().filter(|(_, member)| self.is_bare(member)).map(|(id, _)| id);
        bare.next().filter(|_| bare.next().is_none())
    }

    fn is_bare(&self, member: &Member) -> bool {
        namespace::is_bare(&self.rules.naming, member.owner.prefix())
    }

    /// Upstreams that were never seen and whose a name could be, of those that a caller may see.
    pub(crate) fn unseen_owners(&self, public: &str, grants: &Grants) -> impl Iterator<Item = MemberId> {
        self.unseen().filter(move |id| self.may_own(*id, public) && self.sees(*id, grants))
    }

    /// Upstreams of which not all could be read the last time, or that have failed since, and whose a name could be, of those that a
    /// caller may see.
    pub(crate) fn partly_seen_owners(&self, public: &str, grants: &Grants) -> impl Iterator<Item = MemberId> {
        let seen = self.known.iter().filter(|(_, known)| known.is_some()).map(|(id, _)| id);
        let is_well = |id: MemberId| self.members[id].owner.is_whole() && !self.members[id].has_failed();
        seen.filter(move |id| !is_well(*id) && self.may_own(*id, public) && self.sees(*id, grants))
    }

    /// Those of them whose last list of this kind was empty: nothing is known of what they have.
    pub(crate) fn empty_owners(&self, kind: Kind, public: &str, grants: &Grants) -> impl Iterator<Item = MemberId> {
        let has_failed = |id: &MemberId| self.members[*id].has_failed();
        let is_empty = move |id: &MemberId| !self.shelf(kind).entries().iter().any(|entry| entry.member == *id);
        self.partly_seen_owners(public, grants).filter(has_failed).filter(is_empty)
    }

    /// Whether a caller may use a tool or prompt of an upstream that no list names: what it claims of itself is not known.
    pub(crate) fn may_have(&self, member: MemberId, kind: Kind, public: &str, grants: &Grants) -> bool {
        let (now, upstream) = (grants.now(), self.members[member].owner.name());
        now.rights().is_none_or(|rights| match kind {
            Kind::Tools => rights.has_tool(upstream, public, || false),
            _ => rights.has_prompt(upstream, public),
        })
    }

    /// Whether a name could be of an upstream.
    pub(crate) fn may_own(&self, id: MemberId, public: &str) -> bool {
        let member = &self.members[id];
        let rest = public.strip_prefix(member.owner.prefix());
        self.is_bare(member) || rest.is_some_and(|rest| rest.starts_with(&*self.rules.naming.separator))
    }

    /// Whether an upstream was never seen and may be soon: not one that is no longer configured.
    pub(crate) fn is_awaited(&self, id: MemberId) -> bool {
        self.known.get(id).is_some_and(Option::is_none) && self.members[id].is_coming()
    }

    /// Whether clients of this era are about to see another inventory of an upstream than this catalog has.
    pub(crate) fn awaits_era(&self, id: MemberId, era: Era) -> bool {
        let is_of_era = |known: &Arc<Inventory>| known.revision.era() == era;
        let (known, member) = (self.known.get(id), self.members.get(id));
        !known.and_then(Option::as_ref).is_none_or(is_of_era)
            && member.is_some_and(|member| member.owner.is_era_coming(era))
    }

    /// Upstreams that were never seen.
    pub(crate) fn unseen(&self) -> impl Iterator<Item = MemberId> {
        self.known.iter().filter(|(_, known)| known.is_none()).map(|(id, _)| id)
    }

    /// All of all kinds.
    pub(crate) fn lists(&self) -> [Arc<ItemList>; 4] {
        self.shelves.clone()
    }

    /// Which catalog this is.
    pub(crate) fn versions(&self) -> Versions {
        Versions { catalog: self.version, lists: self.shelves.each_ref().map(|list| list.version()) }
    }

    /// The kinds in which the view of a caller with these rights differs from what was listed before.
    pub(crate) fn changes(&self, before: &[Arc<ItemList>; 4], rights: Option<&Arc<Rights>>) -> Vec<Kind> {
        let differs = |kind: &Kind| {
            let (new, old) = (self.shelf(*kind), &before[*kind as usize]);
            !Arc::ptr_eq(new, old) && !new.looks_like(old, rights)
        };
        Kind::ALL.into_iter().filter(differs).collect()
    }

    /// The kinds in which one with these rights sees something else than one with those.
    pub(crate) fn differences(&self, one: Option<&Arc<Rights>>, other: Option<&Arc<Rights>>) -> Vec<Kind> {
        Kind::ALL.into_iter().filter(|kind| !self.shelf(*kind).is_same_for(one, other)).collect()
    }

    /// Whether nothing differs, so that it need not be swapped.
    pub(crate) fn is(&self, before: &Self) -> bool {
        let same = |now: Option<&Arc<Inventory>>, before: Option<&Arc<Inventory>>| match (now, before) {
            (Some(now), Some(before)) => Arc::ptr_eq(now, before),
            (None, None) => true,
            _ => false,
        };
        let mut both = self.known.iter().zip(before.known.iter());
        Arc::ptr_eq(&self.rules, &before.rules)
            && self.known.len() == before.known.len()
            && both.all(|((id, now), (whose, before))| id == whose && same(now.as_ref(), before.as_ref()))
    }
}
