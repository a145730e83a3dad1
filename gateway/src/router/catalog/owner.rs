//! An upstream as the router sees it: who owns names, takes calls and tells what it offers.

use crate::call::caller::{ClientSession, Principal};
use crate::call::{Call, Handle};
use crate::health::Cause;
use crate::health::row::State;
use crate::protocol::capabilities::beyond::Declared;
use crate::protocol::revision::Era;
use crate::upstream::config::Sharing;
use crate::upstream::inventory::{Inventory, Variant};
use crate::upstream::{SessionLevels, Upstream};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::DropGuard;

/// How long a request waits for upstreams that were never seen, where their configuration does not say.
pub(crate) const START_WAIT: Duration = Duration::from_secs(5);

/// What the router asks of an upstream. It is handed calls whose names and URIs are its own; its replies name it as their owner.
pub trait Owner: Handle {
    /// Its configured name.
    fn name(&self) -> &Arc<str>;

    /// What a person calls it, where that is not its name.
    fn title(&self) -> Option<&str>;

    /// What stands before the separator in its public names; empty means that they stay bare.
    fn prefix(&self) -> &str;

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
    fn cause(&self) -> Option<Cause> {
        None
    }

    /// Whether an attempt to start it has failed, and none has succeeded since.
    fn has_failed(&self) -> bool {
        matches!(self.state(), State::BackingOff | State::Failed)
    }

    /// How long it is until its next attempt, where one is due.
    fn retry_in(&self) -> Option<Duration> {
        None
    }

    /// How long a call waits for its first inventory.
    fn start_wait(&self) -> Duration {
        START_WAIT
    }

    /// Has this remark shown with it, in place of what was remarked under the same word; none takes that away.
    fn remark(&self, _word: &'static str, _remark: Option<String>) {}

    /// One of its answers breaks the protocol, as only the router can see.
    fn misbehaved(&self, _why: &str) {}

    /// Nobody will ask after a task that it has made: it is told so, in the session of the caller. Nothing waits for its answer.
    fn withdraw(&self, _cancel: &Call) {}

    /// Reads the inventory again in the background, where it is old or was never known; that of the caller's own instance too.
    fn refresh(&self, call: &Call);

    /// Whether each handshake session has an instance of it to itself, whose lists it sees.
    fn is_per_session(&self) -> bool;

    /// Whether sessions may come to have lists of their own there, which they are told of then.
    fn may_be_per_session(&self) -> bool {
        false
    }

    /// What the instance of a session offers; `None` while it has none. What it was told of instances says when to ask again.
    fn inventory_of(&self, session: &Arc<ClientSession>) -> Option<watch::Receiver<Option<Arc<Inventory>>>>;

    /// What clients of an era see in its place, once that was read; `None` where they never see anything else.
    fn inventory_of_era(&self, _era: Era) -> Option<watch::Receiver<Option<Arc<Inventory>>>> {
        None
    }

    /// A client of this era has come.
    fn expect_era(&self, _era: Era) {}

    /// Whether what clients of an era see is about to be read for the first time.
    fn is_era_coming(&self, _era: Era) -> bool {
        false
    }

    /// Whether calls of an era go to an instance of its own, though what it offers need not be read yet.
    fn speaks_beside(&self, _era: Era) -> bool {
        false
    }

    /// Whether clients that declare different capabilities may see different lists of it.
    fn may_vary(&self) -> bool {
        false
    }

    /// What clients of an era see that declare this, for as long as the receiver is held; `None` where they see what all do.
    fn variant(&self, _era: Era, _set: &Declared) -> Option<watch::Receiver<Variant>> {
        None
    }

    /// Whether each principal has a login of its own there, and so lists of its own.
    fn is_personal(&self) -> bool {
        false
    }

    /// What it offers to a principal with a login of its own, as clients of an era see it; `None` where all have the same.
    fn offered_to(&self, _principal: &Principal, _era: Era) -> Option<watch::Receiver<Option<Arc<Inventory>>>> {
        None
    }

    /// Why it is not there for a principal with a login of its own, where that is known.
    fn cause_for(&self, _principal: &Principal) -> Option<Cause> {
        None
    }

    /// How verbose it is to be for sessions, whenever that may have changed.
    fn want_levels(&self, levels: &Arc<SessionLevels>);
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

    fn start_wait(&self) -> Duration {
        self.config().start_wait
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

    fn cause(&self) -> Option<Cause> {
        Self::cause(self)
    }

    fn has_failed(&self) -> bool {
        Self::has_failed(self)
    }

    fn retry_in(&self) -> Option<Duration> {
        Self::retry_in(self)
    }

    fn remark(&self, word: &'static str, remark: Option<String>) {
        Self::remark(self, word, remark);
    }

    fn misbehaved(&self, why: &str) {
        Self::misbehaved(self, why);
    }

    fn withdraw(&self, cancel: &Call) {
        Self::withdraw(self, cancel);
    }

    fn refresh(&self, call: &Call) {
        Self::refresh(self, call);
    }

    fn is_per_session(&self) -> bool {
        self.config().sharing == Sharing::PerSession
    }

    fn may_be_per_session(&self) -> bool {
        self.config().sharing == Sharing::OwnSessions
    }

    fn inventory_of(&self, session: &Arc<ClientSession>) -> Option<watch::Receiver<Option<Arc<Inventory>>>> {
        Self::inventory_of(self, session)
    }

    fn inventory_of_era(&self, era: Era) -> Option<watch::Receiver<Option<Arc<Inventory>>>> {
        Self::inventory_of_era(self, era)
    }

    fn expect_era(&self, era: Era) {
        Self::expect_era(self, era);
    }

    fn is_era_coming(&self, era: Era) -> bool {
        Self::is_era_coming(self, era)
    }

    fn speaks_beside(&self, era: Era) -> bool {
        Self::speaks_beside(self, era)
    }

    fn may_vary(&self) -> bool {
        Self::may_vary(self)
    }

    fn variant(&self, era: Era, set: &Declared) -> Option<watch::Receiver<Variant>> {
        Self::variant(self, era, set)
    }

    fn is_personal(&self) -> bool {
        Self::is_personal(self)
    }

    fn offered_to(&self, principal: &Principal, era: Era) -> Option<watch::Receiver<Option<Arc<Inventory>>>> {
        Self::offered_to(self, principal, era)
    }

    fn cause_for(&self, principal: &Principal) -> Option<Cause> {
        self.is_personal().then(|| self.seat(principal).cause()).flatten()
    }

    fn want_levels(&self, levels: &Arc<SessionLevels>) {
        Self::want_levels(self, levels);
    }
}

/// One upstream's place among all, the same through all snapshots of the catalog.
pub(crate) struct Member {
    /// The upstream.
    pub(crate) owner: Arc<dyn Owner>,
    /// What it offers, as its supervisor tells it.
    pub(crate) inventory: watch::Receiver<Option<Arc<Inventory>>>,
    /// Until when lists wait for its first inventory; set by the first list that does.
    patience: OnceLock<Instant>,
    /// The same for what clients of either era see.
    patience_of_era: [OnceLock<Instant>; 2],
    /// Ends what is done for it once no catalog has it any more.
    watched: OnceLock<DropGuard>,
}

impl Member {
    pub(crate) fn new(owner: Arc<dyn Owner>) -> Self {
        Self {
            inventory: owner.inventory(),
            owner,
            patience: OnceLock::new(),
            patience_of_era: Default::default(),
            watched: OnceLock::new(),
        }
    }

    /// From now on this ends with it.
    pub(crate) fn ends(&self, guard: DropGuard) {
        let _is_first = self.watched.set(guard);
    }

    /// Whether a first inventory is worth waiting for: not that of an upstream that is stopped, or whose first attempt has failed.
    pub(crate) fn is_coming(&self) -> bool {
        let state = self.owner.state();
        state.is_up() || (matches!(state, State::Starting | State::Idle) && !self.owner.has_failed())
    }

    /// Whether it is not there, and the last attempt to start it has failed.
    pub(crate) fn has_failed(&self) -> bool {
        !self.owner.state().is_up() && self.owner.has_failed()
    }

    /// Until when a list may wait for the first inventory. The first list decides; hanging upstreams cost that once.
    pub(crate) fn patience(&self, wait: Duration) -> Instant {
        *self.patience.get_or_init(|| Instant::now() + wait)
    }

    /// The same for the first inventory that is read for clients of this era.
    pub(crate) fn patience_of_era(&self, era: Era, wait: Duration) -> Instant {
        *self.patience_of_era[era as usize].get_or_init(|| Instant::now() + wait)
    }
}
