//! The part of an instance that holds what it offers, and what calls need to know of that.

use super::cache::CachedInventory;
use super::contents::Inventory;
use super::item::Item;
use super::schedule::ReadSchedule;
use crate::call::Call;
use crate::peer::profile::BesideCall;
use crate::protocol::frame::Method;
use crate::protocol::http::param_headers::ParamHeaders;
use crate::protocol::revision::Revision;
use crate::protocol::value::Key;
use crate::upstream::config::ToldIdentity;
use arc_swap::ArcSwap;
use http::{HeaderName, HeaderValue};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::watch;

/// What one instance offers.
pub(crate) struct Offering {
    pub(crate) inventory: watch::Sender<Option<Arc<Inventory>>>,
    /// Where it is kept for the next start, if anywhere.
    pub(crate) cached: OnceLock<CachedInventory>,
    pub(crate) reads: ReadSchedule,
    /// Of the tools that tell arguments in headers.
    param_headers: Seldom<HashMap<Arc<str>, Arc<ParamHeaders>>>,
    /// The tools that run as tasks only.
    task_only: Seldom<HashSet<Arc<str>>>,
    /// How the upstream is told whose call it is.
    pub(crate) identity: Option<Arc<ToldIdentity>>,
}

/// What few upstreams have. Every call looks, and where there is nothing it takes no guard to see that.
#[derive(Default)]
struct Seldom<T> {
    is_there: AtomicBool,
    all: ArcSwap<T>,
}

impl<T: Default> Seldom<T> {
    fn new(all: Arc<T>, is_there: bool) -> Self {
        Self { is_there: AtomicBool::new(is_there), all: ArcSwap::new(all) }
    }

    fn copy(&self) -> Self {
        Self::new(self.all.load_full(), self.is_there.load(Ordering::Acquire))
    }

    fn store(&self, all: T, is_there: bool) {
        self.all.store(Arc::new(all));
        self.is_there.store(is_there, Ordering::Release);
    }

    /// These too; what is known already stays.
    fn add<I>(&self, more: impl Iterator<Item = I>)
    where
        T: Clone + Extend<I> + IntoIterator<Item = I>,
    {
        let known = self.all.load_full();
        let mut all = T::default();
        all.extend(more);
        all.extend(T::clone(&known));
        self.store(all, true);
    }

    fn get(&self) -> Option<arc_swap::Guard<Arc<T>>> {
        self.is_there.load(Ordering::Acquire).then(|| self.all.load())
    }
}

impl Default for Offering {
    fn default() -> Self {
        Self {
            inventory: watch::Sender::new(None),
            cached: OnceLock::new(),
            reads: ReadSchedule::default(),
            param_headers: Seldom::default(),
            task_only: Seldom::default(),
            identity: None,
        }
    }
}

impl Offering {
    /// Of an upstream that is told so whose call it is.
    pub(crate) fn telling(identity: Option<Arc<ToldIdentity>>) -> Self {
        Self { identity, ..Self::default() }
    }

    /// Of an instance beside the primary one: what that offers counts as known, until the instance's own was read.
    pub(crate) fn beside(primary: &Self) -> Self {
        Self {
            inventory: watch::Sender::new(primary.inventory.borrow().clone()),
            param_headers: primary.param_headers.copy(),
            task_only: primary.task_only.copy(),
            identity: primary.identity.clone(),
            ..Self::default()
        }
    }

    /// Of an instance of one principal with a login of its own: what was known to that one is known still, and what others see is not.
    pub(crate) fn personal(primary: &Self, known: watch::Sender<Option<Arc<Inventory>>>) -> Self {
        Self { inventory: known, identity: primary.identity.clone(), ..Self::default() }
    }

    /// Where nothing was offered but to log in, nothing is known from now on.
    pub(crate) fn login_was_made(&self) {
        self.inventory.send_if_modified(|known| known.take_if(|known| known.offers_login()).is_some());
    }

    /// From now on this is what the instance offers.
    pub(super) fn publish(&self, inventory: Inventory, is_http: bool) {
        // Also where it comes from the disk: what the upstream says with the next read holds for it, too.
        let inventory = Inventory { fresh: self.reads.fresh.clone(), ..inventory };
        let in_headers = |tool: &Item| Some((tool.key.clone(), tool.headers.clone()?));
        let headers: HashMap<_, _> = match is_http && inventory.revision.is_modern() {
            true => inventory.tools.iter().filter_map(in_headers).collect(),
            false => HashMap::default(),
        };
        let is_any = !headers.is_empty();
        self.param_headers.store(headers, is_any);
        let task_only: HashSet<_> = match inventory.revision == Revision::V2025_11_25 && inventory.supports.tasks {
            true => inventory.tools.iter().filter(|tool| tool.runs_as_a_task()).map(|tool| tool.key.clone()).collect(),
            false => HashSet::default(),
        };
        let is_any = !task_only.is_empty();
        self.task_only.store(task_only, is_any);
        self.inventory.send_replace(Some(Arc::new(inventory)));
    }

    /// What calls need to know of tools that only some clients are offered is known too, until it is published again.
    pub(crate) fn learn(&self, variant: &Self) {
        if let Some(more) = variant.param_headers.get() {
            self.param_headers.add(more.iter().map(|(tool, headers)| (tool.clone(), headers.clone())));
        }
        if let Some(more) = variant.task_only.get() {
            self.task_only.add(more.iter().cloned());
        }
    }

    /// From now on it is not known what the instance offers.
    pub(super) fn withdraw(&self) {
        self.param_headers.store(HashMap::default(), false);
        self.task_only.store(HashSet::default(), false);
        self.inventory.send_replace(None);
    }

    /// What a call says beside itself.
    pub(crate) fn beside_of(&self, call: &Call) -> BesideCall<'_> {
        BesideCall { headers: self.headers_of(call), identity: self.identity.as_deref() }
    }

    /// The `Mcp-Param-*` headers of a call, which only stateless HTTP upstreams look at.
    fn headers_of(&self, call: &Call) -> Vec<(HeaderName, HeaderValue)> {
        let Some(headers) = self.param_headers.get().filter(|_| call.method == Method::ToolsCall) else {
            return Vec::new();
        };
        let made = call
            .target_name()
            .and_then(|name| headers.get(&*name))
            .map(|known| known.make(call.params.get(Key::Arguments)));
        made.unwrap_or_default()
    }

    /// Whether a call is of a tool that runs as a task only.
    pub(crate) fn is_task_only(&self, call: &Call) -> bool {
        let Some(tools) = self.task_only.get().filter(|_| call.method == Method::ToolsCall) else { return false };
        call.target_name().is_some_and(|name| tools.contains(&*name))
    }

    /// These tools run as tasks only.
    #[cfg(test)]
    pub(crate) fn only_as_tasks(&self, tools: &[&str]) {
        self.task_only.store(tools.iter().map(|tool| Arc::from(*tool)).collect(), !tools.is_empty());
    }
}
