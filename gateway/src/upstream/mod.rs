//! The servers behind us: each kept alive, spoken to in its own era, shown as a plain function from `Call` to `Reply`.

pub mod config;

mod backoff;
mod fault;
mod gate;
mod identity;
mod inventory;
mod judge;
mod keeping;
mod legacy;
mod levels;
mod link;
mod listening;
mod lists;
mod modern;
mod notice;
mod peer;
mod probe;
mod reads;
mod source;
mod standing;
mod streaming;
mod subscribing;
mod subscriptions;
mod supervisor;
mod words;

pub use inventory::{Inventory, Item, Supports};
pub use notice::Notice;

use crate::call::{Call, ListenFilter, LogLevel, Reason, Refusal, Reply};
use crate::lifecycle::{Seat, State, Tasks};
use crate::protocol::object::Key;
use crate::protocol::{Method, Object};
use config::Config;
use listening::ListenSource;
use source::{CallSource, Sending};
use standing::Standing;
use std::sync::Arc;
use tokio::sync::watch;

/// One upstream, from its configuration to its proven end. Cheap to clone; clones are the same.
#[derive(Clone)]
pub struct Upstream(Arc<Standing>);

impl Upstream {
    /// An upstream that nobody keeps alive yet: it counts as starting, and calls wait.
    pub fn new(config: Config, seat: Seat, notices: Arc<dyn Fn(Notice) + Send + Sync>) -> Self {
        Self(Arc::new(Standing::new(config, seat, notices)))
    }

    /// Starts to keep it alive, once; its tasks are of this level and end with it.
    pub fn keep_alive(&self, tasks: &Tasks) {
        tasks.spawn(supervisor::supervise(self.0.clone(), tasks.clone()));
    }

    #[cfg(test)]
    fn of(standing: Arc<Standing>) -> Self {
        Self(standing)
    }

    /// Its configured name.
    pub fn name(&self) -> &Arc<str> {
        &self.0.name
    }

    /// Its configuration.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// Where it stands.
    pub fn state(&self) -> State {
        self.0.seat.health().state
    }

    /// What it offers, once that is known; told only when it really changed.
    pub fn inventory(&self) -> watch::Receiver<Option<Arc<Inventory>>> {
        self.0.inventory.subscribe()
    }

    /// Somebody looks at the inventory: it is read again where that was last done long ago.
    pub fn refresh(&self) {
        self.0.reads.refresh();
    }

    /// The most verbose level of log messages that any session wants.
    pub fn want_level(&self, level: Option<LogLevel>) {
        self.0.levels.want(level);
    }

    /// Resolves when it was told to stop and nothing of it is left.
    pub async fn stopped(&self) {
        self.0.stopped.cancelled().await;
    }

    /// Takes a call, its names and URIs already this upstream's own. Nothing waits here: frames keep the order of these calls.
    pub fn call(&self, call: Call) -> Reply {
        let revision = call.revision();
        if call.is_notification {
            self.tell(&call);
            return Reply::complete(revision, Object::empty()).owned_by(&self.0.name);
        }
        let reply = match self.judge(&call) {
            Some(refusal) => Reply::refuse(revision, refusal),
            None if call.method == Method::Listen => self.listen(&call),
            None => match self.0.admit(&call) {
                Ok(Sending::Sent(sent)) => Reply::live(CallSource::sent(&self.0, call, sent)),
                Ok(Sending::Waiting(turn)) => Reply::live(CallSource::waiting(&self.0, call, turn)),
                Err(refusal) => Reply::refuse(revision, refusal),
            },
        };
        reply.owned_by(&self.0.name)
    }

    /// What may not be called answers as what is not there.
    fn judge(&self, call: &Call) -> Option<Refusal> {
        if call.method != Method::ToolsCall {
            return None;
        }
        let name = call.params.text(Key::Name)?;
        (!self.0.config.tools.admits(&name))
            .then(|| Refusal::new(Reason::InvalidParams, format!("Unknown tool: {name}")))
    }

    fn listen(&self, call: &Call) -> Reply {
        match ListenFilter::parse(&call.params) {
            Some(filter) => Reply::live(ListenSource::new(&self.0, filter, call.revision())),
            None => Reply::refuse(
                call.revision(),
                Refusal::new(Reason::InvalidParams, "`notifications` must say what to listen for"),
            ),
        }
    }

    fn tell(&self, call: &Call) {
        // A notification is for who is there now: one that is not there yet will not miss it.
        let Some(Err(lost)) = self.0.gate.peer().map(|peer| peer.tell(call)) else { return };
        let (method, cause) = (call.method.label(), &**lost.text());
        tracing::debug!(upstream = &*self.0.name, method, cause, "a notification was not sent");
    }
}

#[cfg(test)]
mod tests;
