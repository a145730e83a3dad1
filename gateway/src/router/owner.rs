//! An upstream as the router sees it: who owns names, takes calls and tells what it offers.

use crate::call::{Call, LogLevel, Reply, Tenant};
use crate::lifecycle::State;
use crate::upstream::config::Sharing;
use crate::upstream::{Inventory, Upstream};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// What the router asks of an upstream.
pub trait Owner: Send + Sync + 'static {
    /// Its configured name.
    fn name(&self) -> &Arc<str>;

    /// What a person calls it, where that is not its name.
    fn title(&self) -> Option<&str>;

    /// What stands before the separator in its public names; empty means that they stay bare.
    fn prefix(&self) -> &str;

    /// Takes a call whose names and URIs are its own; the reply names it as its owner.
    fn call(&self, call: Call) -> Reply;

    /// What it offers; `None` while that was never known. Sent only on a real change.
    fn inventory(&self) -> watch::Receiver<Option<Arc<Inventory>>>;

    /// Where it stands.
    fn state(&self) -> State;

    /// Tells when any owner may stand elsewhere; `None` where nobody says so.
    fn changes(&self) -> Option<watch::Receiver<u64>> {
        None
    }

    /// Whether all that it offers could be read the last time.
    fn is_whole(&self) -> bool {
        true
    }

    /// Why it is not ready, as clients are told it.
    fn cause(&self) -> Option<String> {
        None
    }

    /// Reads the inventory again in the background, where it is old or was never known; that of the caller's own instance too.
    fn refresh(&self, call: &Call);

    /// Whether each handshake session has an instance of it to itself, whose lists it sees.
    fn is_per_session(&self) -> bool;

    /// What the instance of a session offers; `None` while it has none. What it was told of instances says when to ask again.
    fn inventory_of(&self, session: &Arc<Tenant>) -> Option<watch::Receiver<Option<Arc<Inventory>>>>;

    /// The most verbose level at which anyone wants its log messages.
    fn want_level(&self, level: Option<LogLevel>);
}

impl Owner for Upstream {
    fn name(&self) -> &Arc<str> {
        Self::name(self)
    }

    fn title(&self) -> Option<&str> {
        self.config().title.as_deref()
    }

    fn prefix(&self) -> &str {
        &self.config().prefix
    }

    fn call(&self, call: Call) -> Reply {
        Self::call(self, call)
    }

    fn inventory(&self) -> watch::Receiver<Option<Arc<Inventory>>> {
        Self::inventory(self)
    }

    fn state(&self) -> State {
        Self::state(self)
    }

    fn changes(&self) -> Option<watch::Receiver<u64>> {
        Some(Self::changes(self))
    }

    fn is_whole(&self) -> bool {
        Self::is_whole(self)
    }

    fn cause(&self) -> Option<String> {
        Self::cause(self)
    }

    fn refresh(&self, call: &Call) {
        Self::refresh(self, call);
    }

    fn is_per_session(&self) -> bool {
        self.config().sharing == Sharing::PerSession
    }

    fn inventory_of(&self, session: &Arc<Tenant>) -> Option<watch::Receiver<Option<Arc<Inventory>>>> {
        Self::inventory_of(self, session)
    }

    fn want_level(&self, level: Option<LogLevel>) {
        Self::want_level(self, level);
    }
}

/// One upstream's place among all, the same through all snapshots of the catalog.
pub(super) struct Member {
    /// The upstream.
    pub(super) owner: Arc<dyn Owner>,
    /// What it offers, as its supervisor tells it.
    pub(super) inventory: watch::Receiver<Option<Arc<Inventory>>>,
    /// Until when lists wait for its first inventory; set by the first list that does.
    patience: OnceLock<Instant>,
}

impl Member {
    pub(super) fn new(owner: Arc<dyn Owner>) -> Self {
        Self { inventory: owner.inventory(), owner, patience: OnceLock::new() }
    }

    /// Whether an inventory may come soon: a stopped or failed upstream is not waited for.
    pub(super) fn is_coming(&self) -> bool {
        let state = self.owner.state();
        state.is_up() || matches!(state, State::Starting | State::BackingOff | State::Idle)
    }

    /// Until when a list may wait for the first inventory. The first list decides; hanging upstreams cost that once.
    pub(super) fn patience(&self, wait: Duration) -> Instant {
        *self.patience.get_or_init(|| Instant::now() + wait)
    }
}
