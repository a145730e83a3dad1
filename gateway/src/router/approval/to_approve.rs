//! The tools that nobody has approved as they are, for whoever is to do that.

use crate::protocol::value::canonical;
use crate::router::catalog::snapshot::Catalog;
use crate::router::config::{Approval, shown};
use crate::upstream::inventory::Item;
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The tools that nobody has approved as they are, by upstream and own name.
pub(crate) type ToApprove = BTreeMap<(Arc<str>, Arc<str>), Candidate>;

/// One of them.
#[derive(Default)]
pub struct Candidate {
    /// What clients call it, or would.
    pub public: Option<Arc<str>>,
    /// `new` or `changed`.
    pub why: &'static str,
    /// Its definitions as its upstream writes them now, each with its digest: there may be one for each era, and more for what clients
    /// declare.
    pub definitions: Vec<(String, Bytes)>,
    /// As what it was approved, where that was kept.
    pub approved: Vec<Box<str>>,
    /// The approved tool that is gone and was defined in the same way, but for its name.
    pub renamed_from: Option<Box<str>>,
}

/// What of these catalogs is to be approved, at most so much.
pub(crate) fn of(catalogs: &[Arc<Catalog>], most: usize) -> ToApprove {
    let mut found = ToApprove::new();
    for catalog in catalogs {
        for tool in &catalog.unapproved {
            let Some(member) = catalog.members.get(tool.member) else { continue };
            let key = (member.owner.name().clone(), tool.own.clone());
            if found.len() >= most && !found.contains_key(&key) {
                continue;
            }
            let candidate =
                found.entry(key).or_insert_with(|| Candidate { why: tool.why.as_str(), ..Candidate::default() });
            candidate.public = candidate.public.take().or_else(|| tool.public.clone());
        }
    }
    // Those of one upstream stand together.
    let mut last: Option<(&Arc<str>, Offered<'_>)> = None;
    for ((upstream, own), candidate) in &mut found {
        let offered = match last.take() {
            Some((known, offered)) if known == upstream => offered,
            _ => Offered::of(catalogs, upstream),
        };
        candidate.complete(&offered, own);
        last = Some((upstream, offered));
    }
    found
}

/// What one upstream offers, and what of it was approved: looked up for each tool that is to be approved.
struct Offered<'a> {
    /// Its tools by name, in each catalog.
    tools: HashMap<&'a str, Vec<&'a Item>>,
    /// As what its tools were approved.
    approved: HashMap<&'a str, &'a [Approval]>,
    /// The approved tools that are gone, by their definitions without the name.
    gone: HashMap<[u8; 32], &'a str>,
}

impl<'a> Offered<'a> {
    fn of(catalogs: &'a [Arc<Catalog>], upstream: &str) -> Self {
        let mut tools: HashMap<&str, Vec<&Item>> = HashMap::new();
        for tool in catalogs.iter().flat_map(|catalog| self::tools(catalog, upstream)) {
            tools.entry(&tool.key).or_default().push(tool);
        }
        let pins = catalogs.first().map(|catalog| &catalog.rules.pins.approved);
        let approved: HashMap<_, _> = pins.into_iter().flat_map(|pins| pins.tools_of(upstream)).collect();
        let mut gone = HashMap::new();
        for (name, all) in pins.into_iter().flat_map(|pins| pins.tools_of(upstream)) {
            let texts = all.iter().filter(|_| !tools.contains_key(name)).filter_map(|one| one.definition.as_deref());
            texts.for_each(|text| _ = gone.entry(nameless(text.as_bytes())).or_insert(name));
        }
        Self { tools, approved, gone }
    }
}

/// What a tool is but for its name.
fn nameless(definition: &[u8]) -> [u8; 32] {
    canonical::definition(definition, Some("name"))
}

impl Candidate {
    fn complete(&mut self, offered: &Offered<'_>, own: &str) {
        for tool in offered.tools.get(own).into_iter().flatten() {
            let digest = shown(tool.digest());
            if !self.definitions.iter().any(|(known, _)| *known == digest) {
                self.definitions.push((digest, tool.definition.raw().clone()));
            }
        }
        let approved = offered.approved.get(own).copied().unwrap_or_default();
        self.approved = approved.iter().filter_map(|one| one.definition.clone()).collect();
        if self.why == "new" && !offered.gone.is_empty() {
            let mut was = self.definitions.iter().filter_map(|(_, now)| offered.gone.get(&nameless(now)));
            self.renamed_from = was.next().map(|name| (*name).into());
        }
    }
}

/// The tools that an upstream offers.
fn tools<'a>(catalog: &'a Catalog, upstream: &str) -> impl Iterator<Item = &'a Item> {
    let whose = catalog.members.iter().find(|(_, member)| **member.owner.name() == *upstream).map(|(id, _)| id);
    let known = whose.and_then(|id| catalog.known.get(id)?.as_ref());
    known.into_iter().flat_map(|inventory| inventory.tools.iter())
}
