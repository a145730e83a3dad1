//! The upstreams that there are now: added, replaced and removed while the gateway runs.

use crate::call::caller::ClientSession;
use crate::health::row::State;
use crate::health::{Cause, CauseCode, StatusBoard};
use crate::protocol::capabilities::beyond::Declared;
use crate::protocol::revision::Era;
use crate::router::{Listeners, Owner, Router};
use crate::runtime::Tasks;
use crate::secrets::private;
use crate::upstream::config::{Config, Credentials, Sharing};
use crate::upstream::inventory::InventoryCache;
use crate::upstream::{KeptSessions, StartLimit, Upstream};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// An upstream that comes in the place of another one, and may be up beside it, has so long for that; then it takes the calls all the same.
const UP_WITHIN: Duration = Duration::from_secs(5);
/// How often it is looked whether an upstream that goes has calls left: what counts them is not to cost a call anything.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// What is said of an upstream that goes while it has calls.
const GOING: &str = "removed";

/// What all upstreams are made with.
pub(super) struct Terms {
    /// The gateway has one client: all that there is, is its own already.
    pub(super) is_of_one_client: bool,
    pub(super) board: StatusBoard,
    pub(super) listeners: Listeners,
    /// What the one client on stdin has declared.
    pub(super) said: watch::Sender<Option<Declared>>,
    /// Where inventories are kept, if anywhere.
    pub(super) store: Option<Arc<InventoryCache>>,
    /// Where the sessions of clients are kept, if anywhere.
    pub(super) kept: Option<Arc<KeptSessions>>,
    /// Where they live, and what outlives them.
    pub(super) tasks: Tasks,
    pub(super) ground: Tasks,
}

/// All upstreams of the gateway.
pub(super) struct Upstreams {
    terms: Terms,
    router: OnceLock<Arc<Router>>,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    /// In configuration order.
    all: Vec<Arc<Running>>,
    /// Whose turn it is to start a child, once they are kept alive.
    starts: Option<StartLimit>,
    /// The session of the one client, where there is one.
    session: Option<Arc<ClientSession>>,
    /// And its era, once it has called.
    era: Option<Era>,
    /// Those that nothing leads to any more, in the order in which they went.
    going: Vec<Arc<Running>>,
}

/// One upstream, and where it lives.
struct Running {
    upstream: Upstream,
    /// The same for the router. What leads to it, and each call that has it from there, holds this.
    owner: Arc<dyn Owner>,
    level: Tasks,
    /// It starts only after this: the end of the one that it follows.
    after: OnceLock<CancellationToken>,
    /// Nothing is left of it, and of those that it follows.
    over: CancellationToken,
}

/// What became of the upstreams.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// There were none of these names.
    pub added: Vec<Arc<str>>,
    /// They were configured otherwise.
    pub changed: Vec<Arc<str>>,
    /// They are no longer configured.
    pub removed: Vec<Arc<str>>,
    /// How many were not touched.
    pub unchanged: usize,
}

impl Upstreams {
    /// Makes them; none is started.
    pub(super) fn new(terms: Terms, configs: &[Config]) -> Arc<Self> {
        let this = Self { terms, router: OnceLock::new(), table: Mutex::default() };
        let all = configs.iter().map(|config| this.make(this.shaped(config.clone()), None)).collect();
        this.lock().all = all;
        Arc::new(this)
    }

    /// Where they live.
    pub(super) fn tasks(&self) -> &Tasks {
        &self.terms.tasks
    }

    /// Those that there are, as the router sees them.
    pub(super) fn owners(&self) -> Vec<Arc<dyn Owner>> {
        self.lock().owners()
    }

    /// This leads to them from now on.
    pub(super) fn led_to_by(&self, router: &Arc<Router>) {
        let _is_first = self.router.set(router.clone());
    }

    /// Who leads to them, once that is known.
    pub(super) fn router(&self) -> Option<&Router> {
        self.router.get().map(|router| &**router)
    }

    /// Keeps them alive from now on, and those that are added later.
    pub(super) fn wake(&self) {
        if let Some(kept) = &self.terms.kept {
            self.terms.ground.spawn(kept.clone().keep(self.terms.ground.clone()));
        }
        let mut table = self.lock();
        table.starts = Some(StartLimit::of_this_machine());
        for running in table.all.clone() {
            self.launch(&table, &running, None);
        }
    }

    /// The gateway ends: sessions of clients that can come back stay open at their upstreams, for the next run.
    pub(super) fn leave(&self) {
        self.terms.kept.iter().for_each(|kept| kept.leave());
    }

    /// The one client of the gateway is of this era: what is started from now on is opened in it.
    pub(super) fn open_in(&self, era: Era) {
        self.lock().era = Some(era);
    }

    /// The one client of the gateway is of this era, and declares this: it sees at once what was offered to such a one last.
    pub(super) fn recall(&self, era: Era, declared: &Declared) {
        let table = self.lock();
        private::off_the_workers(|| table.all.iter().for_each(|running| running.upstream.recall(era, declared)));
        // Not later: the frame that said it may be the question for a list.
        self.lead(&table);
    }

    /// The one client of the gateway has this session now.
    pub(super) fn belong_to(&self, session: &Arc<ClientSession>) {
        let mut table = self.lock();
        table.session = Some(session.clone());
        table.all.iter().for_each(|running| running.upstream.belongs_to(session));
    }

    /// From now on these are the upstreams. One that is configured as before is not touched. A new one takes calls at once; so does one
    /// that replaces a child, and they wait until that has ended, so that the two never work on the same files. One that bears to run
    /// twice takes calls when it is up. What goes has so long for the calls that it has.
    pub(super) async fn set(self: &Arc<Self>, configs: &[Config], grace: Duration) -> Changes {
        let (mut changes, mut going, mut coming) = (Changes::default(), Vec::new(), Vec::new());
        {
            let mut table = self.lock();
            table.going.retain(|old| !old.over.is_cancelled());
            let mut before = std::mem::take(&mut table.all);
            for config in configs.iter().map(|config| self.shaped(config.clone())) {
                let known = before.iter().position(|running| *running.upstream.name() == config.name);
                match known.map(|at| before.remove(at)) {
                    Some(running) if is_served_by(&config, running.upstream.config()) => {
                        running.upstream.is_called_by(config.principals);
                        changes.unchanged += 1;
                        table.all.push(running);
                    }
                    Some(old) => {
                        changes.changed.push(config.name.clone());
                        let new = self.make(config, table.era);
                        new.upstream.stays_stopped_as(&old.upstream);
                        if new.bears_two() && old.bears_two() {
                            // The one before may not bear two.
                            self.launch(&table, &new, old.after.get().cloned());
                            coming.push((old.clone(), new));
                            table.all.push(old);
                        } else {
                            self.succeed(&table, &old, &new);
                            table.all.push(new);
                            going.push(old);
                        }
                    }
                    None => {
                        changes.added.push(config.name.clone());
                        let new = self.make(config, table.era);
                        // One of this name may still have calls.
                        let last = table.going.iter().rfind(|old| old.upstream.name() == new.upstream.name()).cloned();
                        match last.filter(|old| !(old.bears_two() && new.bears_two())) {
                            Some(old) => self.follow(&table, &old, &new),
                            None => self.launch(&table, &new, None),
                        }
                        table.all.push(new);
                    }
                }
            }
            for old in before {
                changes.removed.push(old.upstream.name().clone());
                old.upstream.remark(GOING, Some("removed from the configuration; ends after its calls".to_owned()));
                going.push(old);
            }
            table.going.extend(going.iter().cloned());
            self.lead(&table);
        }
        going.into_iter().for_each(|old| self.retire(old, grace));
        self.take_over(coming, grace).await;
        changes
    }

    /// Those that were started beside the ones that they replace take their place, as soon as they are up or will not be soon.
    async fn take_over(self: &Arc<Self>, coming: Vec<(Arc<Running>, Arc<Running>)>, grace: Duration) {
        let _in_time = timeout(UP_WITHIN, async {
            for (_, new) in &coming {
                new.came().await;
            }
        })
        .await;
        if coming.is_empty() {
            return;
        }
        {
            let mut table = self.lock();
            for (old, new) in &coming {
                new.upstream.takes_after(&old.upstream);
                old.upstream.status().remove();
                if let Some(place) = table.all.iter_mut().find(|running| Arc::ptr_eq(running, old)) {
                    *place = new.clone();
                }
            }
            self.lead(&table);
        }
        coming.into_iter().for_each(|(old, _)| self.retire(old, grace));
    }

    /// Takes the place of a child, and waits for its end.
    fn succeed(&self, table: &Table, old: &Arc<Running>, new: &Arc<Running>) {
        new.upstream.takes_after(&old.upstream);
        old.upstream.status().remove();
        self.follow(table, old, new);
    }

    /// Starts only when nothing is left of the other one.
    fn follow(&self, table: &Table, old: &Arc<Running>, new: &Arc<Running>) {
        if !new.upstream.is_stopped() {
            let said = "waits for the calls and the end of the process that it replaces";
            new.upstream.status().update(|health| health.cause = Some(Cause::new(CauseCode::Starting, said)));
        }
        self.launch(table, new, Some(old.over.clone()));
    }

    /// The configuration, as it is for the clients that there are.
    fn shaped(&self, mut config: Config) -> Config {
        if self.terms.is_of_one_client {
            (config.sharing, config.principals) = (Sharing::Shared, 1);
            config.credentials = config.credentials.map(Credentials::of_one_client);
        }
        config
    }

    fn make(&self, config: Config, era: Option<Era>) -> Arc<Running> {
        let Terms { is_of_one_client, board, listeners, said, store, kept, tasks, .. } = &self.terms;
        let handle = board.add(&config.name, config.transport.word());
        let upstream = match is_of_one_client {
            false => Upstream::new(config, handle, listeners.notices()),
            true => Upstream::of_one_client(config, handle, listeners.notices(), said.subscribe()),
        };
        if let Some(era) = era {
            upstream.opens_in(era);
        }
        if let Some(store) = store {
            // Before anybody can ask: the first answer has what was offered last.
            private::off_the_workers(|| upstream.kept_in(store));
        }
        kept.iter().for_each(|kept| upstream.sessions_kept_in(kept));
        let owner = Arc::new(upstream.clone());
        let (level, after, over) = (tasks.child(), OnceLock::new(), CancellationToken::new());
        Arc::new(Running { upstream, owner, level, after, over })
    }

    /// Keeps an upstream alive, once what it waits for is over; nothing, while none is kept alive.
    fn launch(&self, table: &Table, running: &Arc<Running>, after: Option<CancellationToken>) {
        if let Some(after) = &after {
            let _is_first = running.after.set(after.clone());
        }
        if let Some(session) = &table.session {
            running.upstream.belongs_to(session);
        }
        if let Some(era) = table.era {
            // Those that were made before it was known.
            running.upstream.opens_in(era);
        }
        let Some(starts) = &table.starts else { return };
        running.upstream.share_starts(starts);
        let (kept, tasks) = (running.clone(), &self.terms.tasks);
        let Some(after) = after else {
            running.upstream.keep_alive(&running.level);
            return tasks.spawn(async move { kept.ended().await });
        };
        tasks.spawn(async move {
            tokio::select! {
                () = after.cancelled() => kept.upstream.keep_alive(&kept.level),
                () = kept.level.ending() => {}
            }
            kept.ended().await;
        });
    }

    /// The router leads to those of the table, which are shown in that order.
    fn lead(&self, table: &Table) {
        if let Some(router) = self.router.get() {
            router.set(table.owners());
        }
        self.terms.board.arrange(table.all.iter().map(|running| running.upstream.status()));
    }

    /// Ends an upstream that nothing leads to any more, after its calls, or after so long.
    fn retire(&self, old: Arc<Running>, grace: Duration) {
        self.terms.tasks.spawn(async move {
            tokio::select! {
                _in_time = timeout(grace, old.drained()) => {}
                () = old.level.ending() => {}
            }
            let cut = old.upstream.open_calls();
            old.level.end();
            old.level.ended().await;
            old.upstream.status().remove();
            tracing::info!(upstream = &**old.upstream.name(), calls_cut = cut, "old upstream ended");
            old.ended().await;
        });
    }

    /// The one of this name.
    pub(super) fn find(&self, name: &str) -> Option<Upstream> {
        let table = self.lock();
        table.all.iter().map(|running| &running.upstream).find(|one| **one.name() == *name).cloned()
    }

    /// The instance of an upstream, for who looks whether anything keeps it.
    #[cfg(test)]
    pub(super) fn kept(&self, name: &str) -> std::sync::Weak<crate::upstream::PrimaryInstance> {
        self.find(name).expect("it is there").primary()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether an upstream that runs by the other configuration need not be touched for this one. How many may call it matters to it only
/// where it is told, or shares are reckoned of it.
fn is_served_by(config: &Config, other: &Config) -> bool {
    let is_same_to_clients = config.is_shared() || (config.principals > 1) == (other.principals > 1);
    *config == Config { principals: config.principals, ..other.clone() }
        && config.is_ambiguous() == other.is_ambiguous()
        && is_same_to_clients
}

impl Table {
    fn owners(&self) -> Vec<Arc<dyn Owner>> {
        self.all.iter().map(|running| running.owner.clone()).collect()
    }
}

impl Running {
    /// Whether it may run beside one that it replaces, or that replaces it.
    fn bears_two(&self) -> bool {
        self.upstream.config().overlap
    }

    /// Resolves when it is up, or rests, or will not be up soon.
    async fn came(&self) {
        let mut changes = self.upstream.changes();
        while self.upstream.state() == State::Starting && !self.upstream.has_failed() {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Resolves when no catalog leads to it, and it has no call.
    async fn drained(&self) {
        while Arc::strong_count(&self.owner) > 1 || self.upstream.open_calls() > 0 {
            sleep(LOOK_EVERY).await;
        }
    }

    /// Resolves when it was told to end and has, and so have those that it follows: it may never have been started.
    async fn ended(&self) {
        self.level.ending().await;
        self.level.ended().await;
        if let Some(after) = self.after.get() {
            after.cancelled().await;
        }
        self.over.cancel();
    }
}
