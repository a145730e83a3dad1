//! The tools of a catalog, for who looks at the gateway.

use super::catalog::Kind;
use super::catalog::snapshot::Catalog;
use super::config::Naming;
use super::names::{Party, assign};
use crate::call::caller::Grants;
use crate::upstream::config::Config;
use crate::upstream::inventory::Inventory;
use std::collections::HashSet;
use std::sync::Arc;

/// What handshake clients are offered at one moment.
pub struct Offered(pub(super) Arc<Catalog>);

/// One tool of it.
pub struct OfferedTool {
    /// What clients call it.
    pub public: Arc<str>,
    /// Whose it is.
    pub upstream: Arc<str>,
    /// What that one calls it.
    pub own: Arc<str>,
    /// How many bytes its definition has, as its upstream wrote it.
    pub bytes: usize,
}

/// A tool that its upstream offers, and clients are not.
pub struct HiddenTool {
    /// Whose it is.
    pub upstream: Arc<str>,
    /// What that one calls it.
    pub own: Arc<str>,
    /// Why.
    pub why: &'static str,
}

/// Why a tool has no public name.
const CONTESTED: &str = "an upstream before it offers a tool of that name";

impl Offered {
    /// What clients would call the tools of upstreams, in configuration order: of each its configuration and what it offers.
    pub(crate) fn names_of(naming: &Naming, upstreams: &[(&Config, Option<Inventory>)]) -> Vec<String> {
        fn party<'a>((config, inventory): &'a (&Config, Option<Inventory>)) -> Party<'a> {
            let tools = inventory.iter().flat_map(|inventory| inventory.tools.iter());
            Party { upstream: &config.name, prefix: &config.prefix, names: tools.map(|tool| &*tool.key).collect() }
        }
        let parties: Vec<_> = upstreams.iter().map(party).collect();
        assign(naming, &parties).into_iter().flatten().flatten().collect()
    }

    /// The tools, at most so many.
    pub fn tools(&self, most: usize) -> Vec<OfferedTool> {
        let tools = self.0.shelf(Kind::Tools).entries().iter().take(most).filter_map(|tool| {
            let upstream = self.0.members.get(tool.member)?.owner.name().clone();
            let (public, own, bytes) = (tool.public.clone(), tool.own.clone(), tool.definition.len());
            Some(OfferedTool { public, upstream, own, bytes })
        });
        tools.collect()
    }

    /// The tools of upstreams that nobody can call, at most so many.
    pub fn hidden(&self, most: usize) -> Vec<HiddenTool> {
        let held = self.0.unapproved.iter().filter(|_| self.0.holds()).filter_map(|tool| {
            let upstream = self.0.members.get(tool.member)?.owner.name().clone();
            Some(HiddenTool { upstream, own: tool.own.clone(), why: tool.why.hidden() })
        });
        let is_held: HashSet<_> = self.0.unapproved.iter().map(|tool| (tool.member, &*tool.own)).collect();
        let is_held = |id, own| self.0.holds() && is_held.contains(&(id, own));
        let shown = self.0.shelf(Kind::Tools).entries().iter().map(|tool| (tool.member, &*tool.own));
        let shown: HashSet<_> = if self.0.hidden.is_empty() { HashSet::new() } else { shown.collect() };
        let known = self
            .0
            .known
            .iter()
            .filter_map(|(id, inventory)| Some((id, &self.0.members.get(id)?.owner, &inventory.as_ref()?.tools)));
        let hidden = known.flat_map(|(id, owner, tools)| {
            let contested = tools.iter().filter(|_| !self.0.hidden.is_empty()).map(|tool| &*tool.key);
            let contested =
                contested.filter(|own| !shown.contains(&(id, *own)) && !is_held(id, *own)).map(|own| (own, CONTESTED));
            let of = |(own, why): (&str, _)| HiddenTool { upstream: owner.name().clone(), own: own.into(), why };
            contested.chain(tools.left_out()).map(of).collect::<Vec<_>>()
        });
        held.chain(hidden).take(most).collect()
    }

    /// What one with these grants sees: tools, prompts, resources and templates, by public names and URIs.
    pub fn seen_by(&self, grants: &Grants) -> [Vec<Arc<str>>; 4] {
        let now = grants.now();
        let public = |kind| self.0.shelf(kind).view(now.rights()).map(|entry| entry.public.clone()).collect();
        Kind::ALL.map(public)
    }

    /// All upstreams, and whether it is known what each of them offers.
    pub fn upstreams(&self) -> impl Iterator<Item = (&Arc<str>, bool)> {
        self.0
            .members
            .iter()
            .map(|(id, member)| (member.owner.name(), self.0.known.get(id).is_some_and(Option::is_some)))
    }

    /// The definition of a tool as clients read it.
    pub fn definition(&self, public: &str) -> Option<Vec<u8>> {
        self.0.shelf(Kind::Tools).find(public).map(|tool| tool.published().into_owned())
    }
}
