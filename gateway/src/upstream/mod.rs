//! The servers behind us: each kept alive, spoken to in its own era, shown as a plain function from `Call` to `Reply`.

// What one upstream may be told: checked values, made from the files by `config`.
pub mod config;
// Whose an instance of an upstream is, and what it is told that it may ask.
mod owner;
// What an upstream is told in its handshake that may be asked here.
mod declaring;
// When an upstream is started again: jittered delays that double, and a budget.
mod backoff;
// What is shown of an upstream: its phase, its conditions, and what was last reported.
mod status;
// One instance of an upstream: its parts (admission, inventory, subscriptions, questions), and what its link tells them.
mod instance;
// One call to an upstream, or one task: admitted, sent, answered within its deadlines.
mod calls;
// Keeps an upstream alive: started, met, watched, started again within a budget, and stopped with proof.
mod supervise;
// The instances of an upstream beside the primary one: those of sessions and principals, and the one of the other era.
mod instances;
// What reads the bytes of upstreams here, as plain functions: see [`crate::fuzzing`].
#[doc(hidden)]
pub mod fuzzing;

pub use instance::admission::kept::KeptSessions;
pub use instance::inventory;
pub use instance::masked::notification as masked_notification;
pub use instance::subscriptions::SessionLevels;
pub use status::notice;
pub use trunkline_client::transport::remote;
pub use trunkline_client::transport::stdio::start_limit::StartLimit;
pub use trunkline_oauth::logins;

use notice::Notice;

use crate::call::caller::{ClientSession, Principal};
use crate::call::reply::Reply;
use crate::call::{Call, Handle};
use crate::health::row::State;
use crate::health::{Cause, CauseCode, StatusHandle};
use crate::protocol::capabilities::beyond::Declared;
use crate::protocol::frame::Method;
use crate::protocol::revision::Era;
use crate::protocol::value::Object;
use crate::runtime::Tasks;
use calls::sessions::own;
use calls::tasks::{take, withdraw};
use config::Config;
use instance::Instance;
use instance::admission::own::OwnKey;
use instance::persist;
use instances::{Eras, Instances, Seat, Variants, Way, follow_own, log_in, looked_at, told};
use inventory::{Inventory, InventoryCache, Variant};
use owner::{DeclaredLater, Ownership};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// One upstream, from its configuration to its proven end. Cheap to clone; clones are the same.
#[derive(Clone)]
pub struct Upstream {
    /// Holds the inventory, notices and the log level; where clients share nothing, none of their calls.
    primary: Arc<Instance>,
    /// `None` where the primary serves everyone.
    instances: Option<Arc<Instances>>,
    /// `None` where the upstream is spoken to in one era only.
    eras: Option<Arc<Eras>>,
    /// Lists for clients that declare something else than the gateway does for all; `None` where they share one session.
    variants: Option<Arc<Variants>>,
}

impl Upstream {
    /// An upstream that nobody keeps alive yet: it counts as starting, and calls wait.
    pub fn new(config: Config, handle: StatusHandle, notices: Arc<dyn Fn(Notice) + Send + Sync>) -> Self {
        let owner = Ownership::everyone(&config);
        let primary = Arc::new(Instance::new(config, owner, handle, notices));
        let eras = Eras::beside(&primary);
        Self { variants: Variants::beside(&primary, eras.as_ref()), eras, ..Self::of(primary) }
    }

    /// The same where the gateway has one client only, which says what it can be asked.
    pub fn of_one_client(
        config: Config,
        handle: StatusHandle,
        notices: Arc<dyn Fn(Notice) + Send + Sync>,
        said: DeclaredLater,
    ) -> Self {
        let owner = Ownership::client(&config, said);
        Self::of(Instance::new(config, owner, handle, notices).into())
    }

    /// One that is spoken to in the era of its primary instance alone.
    fn of(primary: Arc<Instance>) -> Self {
        Self { instances: Instances::beside(&primary), eras: None, variants: None, primary }
    }

    /// Shows a remark with it, in place of what was remarked under the same word; none takes that away.
    pub fn remark(&self, word: &'static str, remark: Option<String>) {
        let handle = &self.primary.status.handle;
        if handle.health().remarks.get(word) == remark.as_ref() {
            return;
        }
        handle.update(|health| match remark {
            Some(remark) => _ = health.remarks.insert(word, remark),
            None => _ = health.remarks.remove(word),
        });
    }

    /// The one client of the gateway has this session now.
    pub fn belongs_to(&self, session: &Arc<ClientSession>) {
        self.primary.owner.belongs_to(session);
    }

    /// The one client of the gateway is of this era: what is started from now on is opened in it.
    pub fn opens_in(&self, era: Era) {
        self.primary.owner.is_of_era(era);
    }

    /// What it offers is kept in a store from now on; what is kept there of it stands until it is read. Blocks.
    pub fn kept_in(&self, store: &Arc<InventoryCache>) {
        persist::recall(&self.primary, store);
    }

    /// The sessions that clients have to themselves are kept in a store from now on, for the next run of the gateway.
    pub fn sessions_kept_in(&self, store: &Arc<KeptSessions>) {
        persist::keep_sessions(&self.primary, store);
    }

    /// The one client of the gateway is of this era, and declares this: what is kept for such a one stands until it is read. Blocks.
    pub fn recall(&self, era: Era, declared: &Declared) {
        persist::recall_said(&self.primary, (era, declared));
    }

    /// What another one offers stands as its own, until it is read: it comes in the place of that one.
    pub fn takes_after(&self, other: &Self) {
        persist::inherit(&self.primary, &other.primary);
    }

    /// What was stopped by order stays so, however it is configured from now on: before it is kept alive.
    pub fn stays_stopped_as(&self, other: &Self) {
        let is_by_order = |cause: &Cause| cause.code() == CauseCode::StoppedByOrder;
        if other.is_stopped() && other.status().health().cause.as_ref().is_some_and(is_by_order) {
            let cause = supervise::control::by_order(self.name());
            supervise::control::off(&self.primary.admission, &self.primary.status, &cause);
        }
    }

    /// Whether only an order starts it.
    pub fn is_stopped(&self) -> bool {
        self.primary.admission.demand.is_off()
    }

    /// Its children are started in turn with those of others.
    pub fn share_starts(&self, starts: &StartLimit) {
        self.primary.children.share_starts(starts);
    }

    /// Starts to keep it alive, once; its tasks are of this level and end with it. Of several, who is told first starts first.
    pub fn keep_alive(&self, tasks: &Tasks) {
        if self.primary.offering.cached.get().is_some() {
            // First: it must not miss what is read.
            tasks.spawn(persist::keep(self.primary.clone(), tasks.clone()));
        }
        tasks.spawn(supervise::supervise(
            self.primary.clone(),
            supervise::control::ticket(&self.primary),
            tasks.clone(),
        ));
        let primary = self.primary.clone();
        tasks.spawn(async move {
            tokio::select! {
                () = primary.children.stderr.report() => {}
                () = primary.stopped.cancelled() => primary.children.stderr.finish(),
            }
        });
        tasks.spawn_until_end(own::end_left_over(self.primary.clone()));
        self.instances.iter().for_each(|instances| instances.keep_alive(tasks));
        self.eras.iter().for_each(|eras| eras.keep_alive(tasks));
        self.variants.iter().for_each(|variants| variants.keep_alive(tasks));
    }

    /// Its configured name.
    pub fn name(&self) -> &Arc<str> {
        &self.primary.name
    }

    /// Its configuration.
    pub fn config(&self) -> &Config {
        &self.primary.config
    }

    /// So many principals may call it from now on.
    pub fn is_called_by(&self, principals: usize) {
        self.primary.own.iter().for_each(|own| own.tell_apart(principals > 1));
    }

    /// What of it is for a principal: where logins are shared, what is for all.
    pub fn seat(&self, principal: &Principal) -> Seat {
        let of_each = self.instances.as_ref().filter(|_| self.is_personal());
        of_each.map_or_else(|| Seat::of(vec![self.primary.clone()]), |instances| instances.seat(principal))
    }

    /// Its place on the board.
    pub fn status(&self) -> &StatusHandle {
        &self.primary.status.handle
    }

    /// How many of its calls have not ended, those that wait for it too.
    pub fn open_calls(&self) -> usize {
        let open = self.all().map(|instance| instance.admission.traffic.open());
        open.sum::<usize>() + self.eras.as_ref().map_or(0, |eras| eras.waiting())
    }

    /// All its instances but those of single sessions with HTTP upstreams.
    fn all(&self) -> impl Iterator<Item = Arc<Instance>> {
        let beside = self.instances.iter().flat_map(|instances| instances.all());
        let second = self.eras.iter().filter_map(|eras| eras.second());
        beside.chain(second).chain([self.primary.clone()])
    }

    /// Where it stands.
    pub fn state(&self) -> State {
        self.primary.status.handle.health().state
    }

    /// Tells when it, or one of its kind, may stand elsewhere.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.primary.status.handle.changes()
    }

    /// Whether all that it offers could be read the last time.
    pub fn is_whole(&self) -> bool {
        self.primary.offering.reads.are_whole()
    }

    /// Why it is not ready.
    pub fn cause(&self) -> Option<Cause> {
        self.primary.status.handle.health().cause
    }

    /// Whether an attempt to start it has failed, and none has succeeded since.
    pub fn has_failed(&self) -> bool {
        self.primary.status.handle.health().has_failed
    }

    /// How long it is until its next attempt, where one is due.
    pub fn retry_in(&self) -> Option<Duration> {
        self.primary.status.retry_in()
    }

    /// What it offers, once that is known; told only when it really changed.
    pub fn inventory(&self) -> watch::Receiver<Option<Arc<Inventory>>> {
        self.primary.offering.inventory.subscribe()
    }

    /// What clients of an era see in place of [`Self::inventory`], once that was read; `None` where there never is anything.
    pub fn inventory_of_era(&self, era: Era) -> Option<watch::Receiver<Option<Arc<Inventory>>>> {
        Some(self.eras.as_ref()?.inventory(era))
    }

    /// A client of this era has come: where that costs no process, it is found out whether the upstream speaks it.
    pub fn expect_era(&self, era: Era) {
        self.eras.iter().for_each(|eras| eras.expect(era));
    }

    /// Whether an instance beside the primary one speaks an era, though what it offers need not be read yet.
    pub fn speaks_beside(&self, era: Era) -> bool {
        self.eras.as_ref().is_some_and(|eras| eras.serving(era).is_some())
    }

    /// Whether [`Self::inventory_of_era`] is about to be read for the first time.
    pub fn is_era_coming(&self, era: Era) -> bool {
        self.eras.as_ref().is_some_and(|eras| eras.is_coming(era))
    }

    /// What the instance of a session offers, which counts as what the primary one does until it was read; `None` while
    /// there is none.
    pub fn inventory_of(&self, session: &Arc<ClientSession>) -> Option<watch::Receiver<Option<Arc<Inventory>>>> {
        if let Some(own) = &self.primary.own {
            let own = own.get(&OwnKey::Session(session.number())).filter(|own| own.has_lists())?;
            return Some(own.instance.offering.inventory.subscribe());
        }
        Some(self.instances.as_ref()?.of_session(session)?.offering.inventory.subscribe())
    }

    /// Whether each principal has a login of its own, and so lists of its own.
    pub fn is_personal(&self) -> bool {
        self.primary.stands_apart()
    }

    /// What it offers to a principal with a login of its own, as clients of an era see it; `None` where all have the same.
    pub fn offered_to(&self, principal: &Principal, era: Era) -> Option<watch::Receiver<Option<Arc<Inventory>>>> {
        self.instances.as_ref()?.offered_to(principal, era)
    }

    /// Whether clients that declare different capabilities may see different lists.
    pub fn may_vary(&self) -> bool {
        self.variants.is_some()
    }

    /// What clients of an era see that declare this, for as long as the receiver is held; `None` where they see what all do.
    pub fn variant(&self, era: Era, set: &Declared) -> Option<watch::Receiver<Variant>> {
        self.variants.as_ref()?.of(era, set)
    }

    /// One of its answers breaks the protocol, as only the router can see: counted, kept as the last error, logged now and then.
    pub fn misbehaved(&self, why: &str) {
        self.primary.status.violated("bad_answer", &why);
    }

    /// Tells it that nobody will ask after a task of its own any more; where it is not there, nothing is told.
    pub fn withdraw(&self, cancel: &Call) {
        let own = self.instances.as_ref().and_then(|instances| instances.find(cancel));
        withdraw(own.as_ref().unwrap_or(&self.primary), cancel);
    }

    /// Somebody looks at the inventory: it is read again where that was last done long ago, and for the first time where it was
    /// never known.
    pub fn refresh(&self, call: &Call) {
        looked_at(&self.primary, (&self.instances, &self.eras, &self.variants), call);
    }

    /// How verbose it and its instances are to be for sessions.
    pub fn want_levels(&self, levels: &Arc<SessionLevels>) {
        // First: who is started meanwhile finds them.
        self.primary.wanted.follow_sessions(levels);
        let own = self.primary.own.iter().flat_map(|own| own.all()).filter(|own| own.tenant.is_some());
        let own = own.map(|own| own.instance.clone());
        for instance in self.all().chain(own) {
            instance.wanted.levels.want(levels.of(&instance.owner.audience(), self.name()));
        }
    }

    /// Resolves when it was told to stop and nothing of it is left.
    pub async fn stopped(&self) {
        self.primary.stopped.cancelled().await;
    }

    /// Takes a call for which no instance was made.
    fn take(&self, call: Call) -> Reply {
        match (&self.eras, &self.primary.own) {
            (None, Some(own)) if call.method == Method::Listen => follow_own(&self.primary, own, call),
            (None, _) => take(&self.primary, call),
            (Some(eras), _) => match eras.way(&call) {
                Way::Primary => take(&self.primary, call),
                Way::Second(second) => take(&second, call),
                Way::Open(until) => eras.await_way(call, until),
                Way::Follow(filter) => eras.listen(&call, filter),
            },
        }
    }
}

impl Handle for Upstream {
    /// Takes a call, its names and URIs already this upstream's own. Nothing waits here: frames keep the order of these calls.
    fn handle(&self, call: Call) -> Reply {
        let revision = call.revision();
        let reply = match &self.instances {
            _ if call.is_notification => {
                told(&self.primary, (&self.instances, &self.eras, &self.variants), &call);
                Reply::complete(revision, Object::empty())
            }
            None => self.take(call),
            // It was told to stop, and its instances with it.
            Some(_) if self.primary.admission.demand.is_off() => take(&self.primary, call),
            Some(instances) => match instances.lease(&call) {
                Ok(None) => self.take(call),
                Ok(Some(lease)) if self.is_personal() && Inventory::is_login(&call) => {
                    log_in(&lease.instance, call).attach(Box::new(lease))
                }
                Ok(Some(lease)) => take(&lease.instance, call).attach(Box::new(lease)),
                Err(refusal) => Reply::refuse(revision, refusal),
            },
        };
        reply.owned_by(&self.primary.name)
    }
}

#[cfg(test)]
pub(crate) use instance::Instance as PrimaryInstance;

#[cfg(test)]
impl Upstream {
    /// Takes a call, as the router hands it over.
    pub(crate) fn call(&self, call: Call) -> Reply {
        crate::call::Handle::handle(self, call)
    }

    /// Its primary instance, without keeping it.
    pub(crate) fn primary(&self) -> std::sync::Weak<Instance> {
        Arc::downgrade(&self.primary)
    }
}

#[cfg(test)]
pub(crate) mod tests;
