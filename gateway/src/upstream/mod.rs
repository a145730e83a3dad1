//! The servers behind us: each kept alive, spoken to in its own era, shown as a plain function from `Call` to `Reply`.

pub mod config;

mod ailing;
mod ails;
mod asking;
mod backoff;
mod call_sessions;
mod chunks;
mod circle;
mod course;
mod declaring;
mod dialect;
mod fading;
mod fault;
mod fresh;
mod gate;
mod health;
mod holding;
mod identity;
mod instances;
mod inventory;
mod judge;
mod keeping;
mod legacy;
mod levels;
mod limits;
mod link;
mod listening;
mod lists;
mod modern;
mod moving;
mod need;
mod notice;
mod opening;
mod overlap;
mod pace;
mod peer;
mod places;
mod probe;
mod queue;
mod reads;
mod resting;
mod source;
mod standing;
mod starts;
mod stored;
mod storing;
mod streaming;
mod subscribing;
mod subscriptions;
mod supervisor;
mod taking;
mod task_asks;
mod task_form;
mod task_listening;
mod task_progress;
mod tasks;
mod told;
mod turn;
mod words;

pub use fresh::Fresh;
pub use holding::Said;
pub use inventory::{Inventory, Item, Supports};
pub use link::{become_program, guard, leave_guard, missing, own_processes};
pub use notice::{Audience, Notice};
pub use starts::Starts;
pub use stored::Store;

use crate::call::{Call, LogLevel, Reply, Tenant};
use crate::lifecycle::{Seat, State, Tasks};
use crate::protocol::{Method, Object};
use config::Config;
use holding::Holding;
use instances::Instances;
use standing::Standing;
use std::sync::Arc;
use tokio::sync::watch;

/// One upstream, from its configuration to its proven end. Cheap to clone; clones are the same.
#[derive(Clone)]
pub struct Upstream {
    /// Holds the inventory, notices and the log level; where clients share nothing, none of their calls.
    primary: Arc<Standing>,
    /// `None` where the primary serves everyone.
    instances: Option<Arc<Instances>>,
}

impl Upstream {
    /// An upstream that nobody keeps alive yet: it counts as starting, and calls wait.
    pub fn new(config: Config, seat: Seat, notices: Arc<dyn Fn(Notice) + Send + Sync>) -> Self {
        Self::of(Standing::new(config, seat, notices).into())
    }

    /// The same where the gateway has one client only, which says what it can be asked.
    pub fn of_one_client(config: Config, seat: Seat, notices: Arc<dyn Fn(Notice) + Send + Sync>, said: Said) -> Self {
        let holding = Holding::client(&config, said);
        Self::of(Standing::new(config, seat, notices).held(holding).into())
    }

    /// The one client of the gateway has this session now.
    pub fn belongs_to(&self, session: &Arc<Tenant>) {
        self.primary.holding.belongs_to(session);
    }

    /// What it offers is kept in a store from now on; what is kept there of it stands until it is read. Blocks.
    pub fn kept_in(&self, store: &Arc<Store>) {
        storing::recall(&self.primary, store);
    }

    /// Its children are started in turn with those of others.
    pub fn share_starts(&self, starts: &Starts) {
        let _ = self.primary.starts.set(starts.clone());
    }

    /// Starts to keep it alive, once; its tasks are of this level and end with it. Of several, who is told first starts first.
    pub fn keep_alive(&self, tasks: &Tasks) {
        if self.primary.stored.get().is_some() {
            // First: it must not miss what is read.
            tasks.spawn(storing::keep(self.primary.clone(), tasks.clone()));
        }
        tasks.spawn(supervisor::supervise(self.primary.clone(), self.primary.ticket(), tasks.clone()));
        if let Some(instances) = &self.instances {
            instances.keep_alive(tasks);
        }
    }

    fn of(primary: Arc<Standing>) -> Self {
        Self { instances: Instances::beside(&primary), primary }
    }

    /// Its configured name.
    pub fn name(&self) -> &Arc<str> {
        &self.primary.name
    }

    /// Its configuration.
    pub fn config(&self) -> &Config {
        &self.primary.config
    }

    /// Where it stands.
    pub fn state(&self) -> State {
        self.primary.seat.health().state
    }

    /// Tells when it, or one of its kind, may stand elsewhere.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.primary.seat.changes()
    }

    /// Whether all that it offers could be read the last time.
    pub fn is_whole(&self) -> bool {
        self.primary.reads.are_whole()
    }

    /// Why it is not ready, as clients are told it.
    pub fn cause(&self) -> Option<String> {
        self.primary.seat.health().cause.map(|cause| words::in_short(self.name(), &cause))
    }

    /// What it offers, once that is known; told only when it really changed.
    pub fn inventory(&self) -> watch::Receiver<Option<Arc<Inventory>>> {
        self.primary.inventory.subscribe()
    }

    /// What the instance of a session offers, which counts as what the primary one does until it was read; `None` while
    /// there is none.
    pub fn inventory_of(&self, session: &Arc<Tenant>) -> Option<watch::Receiver<Option<Arc<Inventory>>>> {
        Some(self.instances.as_ref()?.of_session(session)?.inventory.subscribe())
    }

    /// Somebody looks at the inventory: it is read again where that was last done long ago, and for the first time where it was
    /// never known.
    pub fn refresh(&self, call: &Call) {
        if self.primary.inventory.borrow().is_none() {
            self.primary.need.wake();
        }
        self.primary.reads.refresh();
        if let Some(own) = self.instances.as_ref().and_then(|instances| instances.find(call)) {
            own.reads.refresh();
        }
    }

    /// The most verbose level of log messages that any session wants.
    pub fn want_level(&self, level: Option<LogLevel>) {
        let instances = self.instances.iter().flat_map(|instances| instances.all());
        instances.chain([self.primary.clone()]).for_each(|standing| standing.levels.want(level));
    }

    /// Resolves when it was told to stop and nothing of it is left.
    pub async fn stopped(&self) {
        self.primary.stopped.cancelled().await;
    }

    /// Takes a call, its names and URIs already this upstream's own. Nothing waits here: frames keep the order of these calls.
    pub fn call(&self, call: Call) -> Reply {
        let revision = call.revision();
        let reply = match &self.instances {
            _ if call.is_notification => {
                self.tell(&call);
                Reply::complete(revision, Object::empty())
            }
            None => self.primary.take(call),
            // It was told to stop, and its instances with it.
            Some(_) if self.primary.need.is_off() => self.primary.take(call),
            Some(instances) => match instances.lease(&call) {
                Ok(None) => self.primary.take(call),
                Ok(Some(lease)) => lease.standing.take(call).attach(Box::new(lease)),
                Err(refusal) => Reply::refuse(revision, refusal),
            },
        };
        reply.owned_by(&self.primary.name)
    }

    /// A notification is for who is there now: one that is not there yet will not miss it.
    fn tell(&self, call: &Call) {
        let own = self.instances.as_ref().and_then(|instances| instances.find(call));
        let standing = own.as_ref().unwrap_or(&self.primary);
        // What a client says of its roots concerns what is its own, and nobody else's.
        if call.method != Method::RootsChanged || standing.holding.is_of(call.caller.tenant.as_ref()) {
            standing.tell(call);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
