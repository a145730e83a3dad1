//! The tools that nobody has approved as they are, for whoever is to do that.

use crate::protocol::value::canonical;
use crate::router::catalog::snapshot::Catalog;
use crate::router::config::{Approval, shown};
use crate::upstream::inventory::Item;
use bytes::Bytes;
use std::collections::BTreeMap;
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
    for ((upstream, own), candidate) in &mut found {
        candidate.complete(catalogs, upstream, own);
    }
    found
}

impl Candidate {
    fn complete(&mut self, catalogs: &[Arc<Catalog>], upstream: &str, own: &str) {
        let of_upstream: Vec<_> = catalogs.iter().flat_map(|catalog| tools(catalog, upstream)).collect();
        for tool in of_upstream.iter().filter(|tool| *tool.key == *own) {
            let digest = shown(tool.digest());
            if !self.definitions.iter().any(|(known, _)| *known == digest) {
                self.definitions.push((digest, tool.definition.raw().clone()));
            }
        }
        let Some(approved) = catalogs.first().map(|catalog| &catalog.rules.pins.approved) else { return };
        let texts = |all: &[Approval]| all.iter().filter_map(|one| one.definition.clone()).collect::<Vec<_>>();
        self.approved = texts(approved.of(upstream, own));
        if self.why == "new" {
            let nameless = |definition: &[u8]| canonical::definition(definition, Some("name"));
            let are: Vec<_> = self.definitions.iter().map(|(_, definition)| nameless(definition)).collect();
            let is_gone = |name: &str| !of_upstream.iter().any(|tool| *tool.key == *name);
            let was = |all: &[Approval]| texts(all).iter().any(|text| are.contains(&nameless(text.as_bytes())));
            let mut gone = approved.tools_of(upstream).filter(|(name, all)| is_gone(name) && was(all));
            self.renamed_from = gone.next().map(|(name, _)| name.into());
        }
    }
}

/// The tools that an upstream offers.
fn tools<'a>(catalog: &'a Catalog, upstream: &str) -> impl Iterator<Item = &'a Item> {
    let whose = catalog.members.iter().find(|(_, member)| **member.owner.name() == *upstream).map(|(id, _)| id);
    let known = whose.and_then(|id| catalog.known.get(id)?.as_ref());
    known.into_iter().flat_map(|inventory| inventory.tools.iter())
}
