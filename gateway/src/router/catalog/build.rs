//! Takes stock: turns the inventories into entries with public names and URIs. Pure.

use super::apps;
use super::entry::Entry;
use super::kind::Kind;
use super::owner::Member;
use crate::protocol::json;
use crate::protocol::value::splice;
use crate::router::approval::why::{Unapproved, Why};
use crate::router::config::{Naming, Pin, Pins};
use crate::router::names::uri::{Marked, Tag};
use crate::router::names::{ByMember, Looks, MemberId, Party, Template, namespace};
use crate::upstream::inventory::{Inventory, Item};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// All entries by kind, and which upstreams have marked URIs.
pub(crate) struct CatalogBuilder {
    pub(crate) entries: [Vec<Entry>; 4],
    pub(crate) marked: ByMember<Option<Marked>>,
    /// Whose pages are that tools name and no list does, by public URI, and what they are called there.
    pub(crate) pages: HashMap<Arc<str>, (MemberId, Arc<str>)>,
    /// What nobody can ask for, since an earlier upstream has the same: whose it is, and its own name.
    pub(crate) hidden: Vec<(MemberId, Arc<str>)>,
    /// The tools that nobody has approved as they are, where that is asked for.
    pub(crate) unapproved: Vec<Unapproved>,
}

/// What each upstream offers, as far as that is known.
pub(crate) type Known = ByMember<Option<Arc<Inventory>>>;

/// Merges inventories in configuration order.
pub(crate) fn take(members: &ByMember<Arc<Member>>, known: &Known, (naming, pins): (&Naming, &Pins)) -> CatalogBuilder {
    let marked = known.map(|_| None);
    let (pages, hidden, unapproved) = (HashMap::new(), Vec::new(), Vec::new());
    let mut stock = CatalogBuilder { entries: Default::default(), marked, pages, hidden, unapproved };
    stock.take_uris(members, known, naming.is_transparent(members.len()));
    for (kind, items) in [(Kind::Tools, tools as fn(&Inventory) -> &[Item]), (Kind::Prompts, prompts)] {
        let parties = members.values().zip(known.values()).map(|(member, inventory)| Party {
            upstream: member.owner.name(),
            prefix: member.owner.prefix(),
            names: inventory.iter().flat_map(|inventory| items(inventory)).map(|item| &*item.key).collect(),
        });
        let assigned = namespace::assign(naming, &parties.collect::<Vec<_>>());
        for ((member, inventory), names) in known.iter().zip(assigned) {
            let Some(inventory) = inventory else { continue };
            for (item, public) in items(inventory).iter().zip(names) {
                let upstream = members[member].owner.name();
                // It keeps its name: no other tool is called otherwise once it is approved.
                if kind == Kind::Tools && stock.is_held(pins, (upstream, member), item, public.as_deref()) {
                    continue;
                }
                stock.put(kind, member, inventory, item, public, "name");
            }
        }
    }
    stock
}

fn tools(inventory: &Inventory) -> &[Item] {
    &inventory.tools
}

fn prompts(inventory: &Inventory) -> &[Item] {
    &inventory.prompts
}

impl CatalogBuilder {
    fn take_uris(&mut self, members: &ByMember<Arc<Member>>, known: &Known, transparent: bool) {
        let (mut uris, mut templates) = (HashSet::new(), HashSet::new());
        for (member, inventory) in known.iter() {
            let Some(inventory) = inventory else { continue };
            let tag = Tag::of(members[member].owner.name());
            let mut marked = Marked { tag, plain: HashSet::new(), uris: HashSet::new(), templates: Vec::new() };
            for item in inventory.resources.iter() {
                let public = marked.claim(&item.key, &mut uris, transparent);
                if let Some(public) = &public {
                    let kept = if **public == *item.key { &mut marked.plain } else { &mut marked.uris };
                    kept.insert(item.key.clone());
                }
                self.put(Kind::Resources, member, inventory, item, public, "uri");
            }
            for (own, _) in inventory.tools.iter().flat_map(|tool| apps::pages(tool.definition.raw())) {
                let own: Arc<str> = own.into();
                if marked.plain.contains(&own) || marked.uris.contains(&own) {
                    continue;
                }
                // A page may be read by name alone: it need not be listed.
                if let Some(public) = marked.claim(&own, &mut uris, transparent) {
                    let kept = if *public == *own { &mut marked.plain } else { &mut marked.uris };
                    kept.insert(own.clone());
                    self.pages.insert(public.into(), (member, own));
                }
            }
            for item in inventory.templates.iter() {
                let public = marked.claim(&item.key, &mut templates, transparent);
                if public.as_deref().is_some_and(|public| *public != *item.key) {
                    marked.templates.push(Template::parse(&item.key));
                }
                self.put(Kind::Templates, member, inventory, item, public, "uriTemplate");
            }
            if !marked.uris.is_empty() || !marked.templates.is_empty() {
                self.marked[member] = Some(marked);
            }
        }
    }

    /// Notes a tool that nobody has approved as it is; whether clients are not offered it.
    fn is_held(
        &mut self,
        pins: &Pins,
        (upstream, member): (&str, MemberId),
        tool: &Item,
        public: Option<&str>,
    ) -> bool {
        let why = (pins.pin != Pin::Off).then(|| Why::of(pins, upstream, tool)).flatten();
        let Some(why) = why else { return false };
        self.unapproved.push(Unapproved { member, own: tool.key.clone(), public: public.map(Arc::from), why });
        pins.pin == Pin::Hold
    }

    fn put(
        &mut self,
        kind: Kind,
        member: MemberId,
        inventory: &Inventory,
        item: &Item,
        public: Option<String>,
        key: &str,
    ) {
        let Some(public) = public else {
            self.hidden.push((member, item.key.clone()));
            return;
        };
        let is_same = *public == *item.key;
        let definition = item.definition.raw();
        let mut changes = Vec::new();
        if !is_same {
            let Some(place) = splice::find(definition, &[key]) else { return };
            changes.push((place, json::quote(&public)));
        }
        if let (Kind::Tools, Some(marked)) = (kind, &self.marked[member]) {
            let public =
                |(own, place): (String, _)| Some((place, json::quote(&marked.publish(&own, &mut Looks::default())?)));
            changes.extend(apps::pages(definition).into_iter().filter_map(public));
            changes.sort_by_key(|(place, _)| place.start);
        }
        let public = if is_same { item.key.clone() } else { public.into() };
        self.entries[kind as usize].push(Entry {
            own_raw: (!is_same).then(|| json::quote(&item.key).into()),
            public,
            own: item.key.clone(),
            member,
            definition: definition.clone(),
            changes,
            revision: inventory.revision,
            headers: item.headers.clone(),
            is_of_gateway: item.is_of_gateway(),
        });
    }
}
