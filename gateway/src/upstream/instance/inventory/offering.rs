//! The part of an instance that holds what it offers, and what calls need to know of that.

use super::cache::CachedInventory;
use super::contents::Inventory;
use super::item::Item;
use super::schedule::ReadSchedule;
use crate::call::Call;
use crate::protocol::frame::Method;
use crate::protocol::http::param_headers::ParamHeaders;
use crate::protocol::revision::Revision;
use crate::protocol::value::Key;
use arc_swap::ArcSwap;
use http::{HeaderName, HeaderValue};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};
use tokio::sync::watch;

/// What one instance offers.
pub(crate) struct Offering {
    pub(crate) inventory: watch::Sender<Option<Arc<Inventory>>>,
    /// Where it is kept for the next start, if anywhere.
    pub(crate) cached: OnceLock<CachedInventory>,
    pub(crate) reads: ReadSchedule,
    /// Of the tools that tell arguments in headers.
    param_headers: ArcSwap<HashMap<Arc<str>, Arc<ParamHeaders>>>,
    /// The tools that run as tasks only.
    task_only: ArcSwap<HashSet<Arc<str>>>,
}

impl Default for Offering {
    fn default() -> Self {
        Self {
            inventory: watch::Sender::new(None),
            cached: OnceLock::new(),
            reads: ReadSchedule::default(),
            param_headers: ArcSwap::default(),
            task_only: ArcSwap::default(),
        }
    }
}

impl Offering {
    /// Of an instance beside the primary one: what that offers counts as known, until the instance's own was read.
    pub(crate) fn beside(primary: &Self) -> Self {
        Self {
            inventory: watch::Sender::new(primary.inventory.borrow().clone()),
            param_headers: ArcSwap::new(primary.param_headers.load_full()),
            task_only: ArcSwap::new(primary.task_only.load_full()),
            ..Self::default()
        }
    }

    /// From now on this is what the instance offers.
    pub(super) fn publish(&self, inventory: Inventory, is_http: bool) {
        // Also where it comes from the disk: what the upstream says with the next read holds for it, too.
        let inventory = Inventory { fresh: self.reads.fresh.clone(), ..inventory };
        let in_headers = |tool: &Item| Some((tool.key.clone(), tool.headers.clone()?));
        let headers = match is_http && inventory.revision.is_modern() {
            true => inventory.tools.iter().filter_map(in_headers).collect(),
            false => HashMap::default(),
        };
        self.param_headers.store(Arc::new(headers));
        let task_only = match inventory.revision == Revision::V2025_11_25 && inventory.supports.tasks {
            true => inventory.tools.iter().filter(|tool| tool.runs_as_a_task()).map(|tool| tool.key.clone()).collect(),
            false => HashSet::default(),
        };
        self.task_only.store(Arc::new(task_only));
        self.inventory.send_replace(Some(Arc::new(inventory)));
    }

    /// From now on it is not known what the instance offers.
    pub(super) fn withdraw(&self) {
        self.param_headers.store(Arc::default());
        self.task_only.store(Arc::default());
        self.inventory.send_replace(None);
    }

    /// The `Mcp-Param-*` headers of a call, which only stateless HTTP upstreams look at.
    pub(crate) fn headers_of(&self, call: &Call) -> Vec<(HeaderName, HeaderValue)> {
        let headers = self.param_headers.load();
        if headers.is_empty() || call.method != Method::ToolsCall {
            return Vec::new();
        }
        let made = call
            .params
            .text(Key::Name)
            .and_then(|name| headers.get(&*name))
            .map(|known| known.make(call.params.get(Key::Arguments)));
        made.unwrap_or_default()
    }

    /// Whether a call is of a tool that runs as a task only.
    pub(crate) fn is_task_only(&self, call: &Call) -> bool {
        let tools = self.task_only.load();
        if tools.is_empty() || call.method != Method::ToolsCall {
            return false;
        }
        call.params.text(Key::Name).is_some_and(|name| tools.contains(&*name))
    }
    /// These tools run as tasks only.
    #[cfg(test)]
    pub(crate) fn only_as_tasks(&self, tools: &[&str]) {
        self.task_only.store(Arc::new(tools.iter().map(|tool| Arc::from(*tool)).collect()));
    }
}
