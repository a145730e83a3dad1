//! Who listens: the registry of live listen replies. What they have to hear waits coalesced with each, never in a queue.

use super::log_quota::{Crowd, LogQuota, heard_by};
use super::pending::{Heard, LOGS_BYTES_MAX, Pending};
use super::rights::ListenerRights;
use super::sees::Sees;
use crate::call::caller::rights::Rights;
use crate::call::caller::{Grants, Principal, SessionRights};
use crate::call::share::{Part, SharePermit, Shares};
use crate::call::{Call, ListenFilter, LogLevel};
use crate::memory::budget::Budget;
use crate::memory::{Refusals, StandingCharge};
use crate::metrics;
use crate::protocol::revision::Era;
use crate::protocol::value::Object;
use crate::router::catalog::snapshot::Versions;
use crate::router::catalog::{Current, Kind};
use crate::router::tasks::TaskNotifier;
use crate::upstream::notice::{Audience, Notice};
use crate::upstream::{SessionLevels, masked_notification};
use bytes::Bytes;
use slab::Slab;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// What a listener keeps, and what each resource or task that it hears of costs beside its text.
const LISTENER_BYTES: usize = 1024;
const NAME_BYTES: usize = 128;
/// So often the text of one is kept: as it was asked for, as its upstream knows it, and in the calls that ask for it.
const NAME_COPIES: usize = 4;
/// So many places there are for subscriptions of sessions and for listen calls; one client alone gets half of them. A session hears
/// of the lists without a place: those listeners are bounded with the sessions.
const PLACES_MAX: usize = 32 * 1024;
/// So many of one client's places may be listen calls that are in no session.
const OF_ONE_MAX: usize = 256;

/// The lists that changed for those with some rights.
type Changes<'a> = &'a dyn Fn(Option<&Arc<Rights>>) -> Vec<Kind>;

/// A session wants a level, or no longer does.
type LevelChange = fn(&SessionLevels, (&Principal, &Grants), &Arc<str>, LogLevel);

/// All live listen replies. Cheap to clone; made before the upstreams, whose notices it takes.
#[derive(Clone, Default)]
pub struct Listeners(Arc<Registry>);

struct Registry {
    table: Mutex<Table>,
    /// Those that have a place.
    places: Arc<Shares>,
    /// The listen calls that are in no session.
    calls: Arc<Shares>,
    /// The levels at which sessions want log messages.
    levels: Arc<SessionLevels>,
    crowd: Crowd,
    is_closed: AtomicBool,
    quota: LogQuota,
    budget: Budget,
    /// Where it is counted what finds no place.
    refusals: Refusals,
    statuses: Arc<TaskNotifier>,
}

/// The listeners, and which of them are a session's.
#[derive(Default)]
struct Table {
    all: Slab<Arc<Listener>>,
    by_session: HashMap<Arc<str>, BTreeSet<usize>>,
}

impl Table {
    fn insert(&mut self, listener: &Arc<Listener>) -> usize {
        let key = self.all.insert(listener.clone());
        if let Some(session) = &listener.session {
            self.by_session.entry(session.clone()).or_default().insert(key);
        }
        key
    }

    fn remove(&mut self, key: usize) {
        let Some(session) = self.all.remove(key).session.clone() else { return };
        if let Some(keys) = self.by_session.get_mut(&session) {
            keys.remove(&key);
            if keys.is_empty() {
                self.by_session.remove(&session);
            }
        }
    }
}

/// One listen reply's side of the registry.
pub(crate) struct Listener {
    filter: ListenFilter,
    rights: ListenerRights,
    /// Whose catalog it sees.
    era: Era,
    /// The session that holds it.
    session: Option<Arc<str>>,
    /// What it sees.
    sees: Sees,
    /// From which level on a legacy session hears log messages.
    log_level: Option<LogLevel>,
    /// Whether it has named that level: upstreams are told so. Else it hears what they send of themselves.
    is_level_named: bool,
    pending: Mutex<Pending>,
    /// The budget, as its client's.
    budget: Budget,
    /// Counts it.
    _kept: StandingCharge,
}

/// A place in the registry; dropping it leaves.
pub(crate) struct Registration {
    registry: Arc<Registry>,
    key: usize,
    pub(crate) listener: Arc<Listener>,
    /// Its places, where it takes any.
    _places: [Option<SharePermit>; 2],
}

impl Registration {
    /// This catalog is in force: what changed before is no news to whoever listens from now on.
    pub(crate) fn saw(&self, now: Versions) {
        self.listener.lock().saw(now);
    }

    /// The rights that count for what it tells now.
    pub(crate) fn rights(&self) -> Arc<SessionRights> {
        self.listener.rights.now()
    }

    /// Takes over the rights that its session has by now, and tells of the lists in which this catalog differs by them; those before.
    pub(crate) fn follow_rights(&self, current: &Current) -> Option<Arc<SessionRights>> {
        let (before, now) = self.listener.rights.follow()?;
        self.listener.wants(&now, &self.registry.levels, SessionLevels::hold);
        self.listener.wants(&before, &self.registry.levels, SessionLevels::release);
        let differing = current.keep().differences(before.grants.keep().as_ref(), now.grants.keep().as_ref());
        differing.into_iter().for_each(|kind| self.listener.tell(kind));
        Some(before)
    }
}

impl Listeners {
    /// A registry that counts what is kept, and what is refused.
    pub fn new(budget: Budget, refusals: Refusals) -> Self {
        Self(Arc::new(Registry { budget, refusals, ..Registry::default() }))
    }

    /// What all that is listened to is counted in.
    pub(crate) fn budget(&self) -> &Budget {
        &self.0.budget
    }

    /// What takes the upstreams' notices; it can be handed to them before there is a router.
    pub fn notices(&self) -> Arc<dyn Fn(Notice) + Send + Sync> {
        let registry = self.0.clone();
        Arc::new(move |notice| match notice {
            Notice::Log { upstream, whose, level, params } => registry.log(&upstream, &whose, level, params),
            Notice::Task { upstream, whose, params } => registry.statuses.told(&upstream, &whose, &params),
            Notice::TaskProgress { upstream, whose, task, params } => {
                registry.statuses.progressed(&upstream, &whose, &task, &params);
            }
            Notice::Gone { upstream, whose } => registry.statuses.gone(&upstream, &whose),
        })
    }

    /// Who is told how tasks stand.
    pub(crate) fn statuses(&self) -> &Arc<TaskNotifier> {
        &self.0.statuses
    }

    /// Ends all listen replies, those to come too.
    pub fn close(&self) {
        self.0.is_closed.store(true, Ordering::Release);
        for listener in self.0.those(|_| true) {
            listener.lock().close();
        }
    }

    /// Takes note of who calls.
    pub(crate) fn note(&self, caller: &Principal) {
        let crowd = &self.0.crowd;
        if crowd.first.get_or_init(|| caller.clone()) != caller && !crowd.is_mixed.load(Ordering::Relaxed) {
            crowd.is_mixed.store(true, Ordering::Relaxed);
            // From now on nobody hears what belongs to no call of one that all share.
            self.0.levels.mix();
        }
    }

    /// Registers a listen call, or says of what there are too many, and counts that. One that is in a session and wants nothing but
    /// the lists takes no place.
    pub(crate) fn register(&self, call: &Call, filter: &ListenFilter, sees: Sees) -> Result<Registration, String> {
        self.placed(call, filter, sees).inspect_err(|why| self.0.refusals.turn_away("listens", why))
    }

    fn placed(&self, call: &Call, filter: &ListenFilter, sees: Sees) -> Result<Registration, String> {
        let session = call.caller.tenant.as_ref().map(|tenant| tenant.id().clone());
        let is_of_lists = filter.uris.is_empty() && filter.tasks.is_empty();
        let places = self.0.places(call, session.is_some() && is_of_lists)?;
        let budget = self.0.budget.owned_by(call.caller.share().owner());
        let names = filter.uris.iter().chain(&filter.tasks).map(|name| name.len() * NAME_COPIES + NAME_BYTES);
        let kept = budget.stand(LISTENER_BYTES + names.sum::<usize>()).map_err(|_| {
            "what this client listens to keeps as much as is its part of `server.memory_limit`; listen to less"
                .to_owned()
        })?;
        let listener = Arc::new(Listener {
            filter: ListenFilter { uris: Vec::new(), tasks: Vec::new(), ..*filter },
            rights: ListenerRights::of(&call.caller),
            era: call.revision().era(),
            session,
            sees,
            log_level: heard_by(call, is_of_lists),
            is_level_named: call.log_level.is_some(),
            pending: Mutex::default(),
            budget,
            _kept: kept,
        });
        let key = self.0.lock().insert(&listener);
        listener.wants(&listener.rights.seen(), &self.0.levels, SessionLevels::hold);
        if self.0.is_closed.load(Ordering::Acquire) {
            listener.lock().close();
        }
        Ok(Registration { registry: self.0.clone(), key, listener, _places: places })
    }

    /// Tells every listener of an era without a view of its own of the lists that changed for it up to a catalog; says whether
    /// anybody was told.
    pub(crate) fn tell_era(&self, era: Era, now: &Versions, changes: Changes<'_>) -> bool {
        let sees = |listener: &Listener| listener.era == era && matches!(listener.sees, Sees::Era);
        tell(self.0.those(|listener| sees(listener) && listener.is_news(now)), now, changes)
    }

    /// The same for the listeners that see what those do who declare the same.
    pub(crate) fn tell_declared(&self, view: &Arc<()>, now: &Versions, changes: Changes<'_>) -> bool {
        let sees = |listener: &Listener| matches!(&listener.sees, Sees::Declared(seen) if Arc::ptr_eq(seen, view));
        tell(self.0.those(|listener| sees(listener) && listener.is_news(now)), now, changes)
    }

    /// The same for the listeners of a session that has a view of its own.
    pub(crate) fn tell_session(&self, session: &str, now: &Versions, changes: Changes<'_>) -> bool {
        let mut those = self.0.of_session(session);
        those.retain(|listener| matches!(listener.sees, Sees::Session));
        tell(those, now, changes)
    }

    /// Tells the listeners with these rights of the lists that differ for them, as `differ` says by what each sees.
    pub(crate) fn tell_regranted(&self, grants: &Grants, differ: impl Fn(Era, &Sees, Option<&str>) -> Vec<Kind>) {
        for listener in self.0.those(|listener| listener.rights.now().grants.is(grants)) {
            let Listener { era, sees, session, .. } = &*listener;
            differ(*era, sees, session.as_deref()).into_iter().for_each(|kind| listener.tell(kind));
        }
    }

    /// The levels that are wanted.
    pub(crate) fn levels(&self) -> &Arc<SessionLevels> {
        &self.0.levels
    }
}

/// Tells these listeners of what each has not seen yet; says whether there was anything for any of them.
fn tell(listeners: Vec<Arc<Listener>>, now: &Versions, changes: Changes<'_>) -> bool {
    let mut by_rights: Vec<(Option<Arc<Rights>>, Vec<Kind>)> = Vec::new();
    for listener in listeners {
        let rights = listener.rights.now().grants.keep();
        let known = by_rights.iter().position(|(known, _)| *known == rights);
        let at = known.unwrap_or_else(|| {
            let changes = changes(rights.as_ref());
            by_rights.push((rights, changes));
            by_rights.len() - 1
        });
        listener.tell_news(now, &by_rights[at].1);
    }
    by_rights.iter().any(|(_, kinds)| !kinds.is_empty())
}

impl Default for Registry {
    fn default() -> Self {
        Self {
            budget: Budget::default(),
            refusals: Refusals::default(),
            table: Mutex::default(),
            places: Shares::new(PLACES_MAX, Part::OfFree),
            calls: Shares::new(PLACES_MAX, Part::AtMost(OF_ONE_MAX)),
            levels: Arc::default(),
            crowd: Crowd::default(),
            is_closed: AtomicBool::new(false),
            quota: LogQuota::default(),
            statuses: Arc::default(),
        }
    }
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The places of a listen call, of which one that `is_free` takes none; or of what there are too many.
    fn places(&self, call: &Call, is_free: bool) -> Result<[Option<SharePermit>; 2], String> {
        if is_free {
            return Ok([None, None]);
        }
        let share = call.caller.share();
        let own =
            match call.caller.tenant {
                Some(_) => None,
                None => Some(self.calls.take(&share).ok_or_else(|| {
                    format!("{OF_ONE_MAX} listen calls of this client are open already; end one first")
                })?),
            };
        let place = self.places.take(&share).ok_or_else(|| {
            let all = self.places.held();
            format!(
                "{all} subscriptions and listen calls are open, and this client has its part of them; end some first"
            )
        })?;
        Ok([own, Some(place)])
    }

    /// Some of them now: the table is not held while they are told.
    fn those(&self, which: impl Fn(&Listener) -> bool) -> Vec<Arc<Listener>> {
        self.lock().all.iter().filter(|(_, listener)| which(listener)).map(|(_, listener)| listener.clone()).collect()
    }

    /// The listeners of a session.
    fn of_session(&self, session: &str) -> Vec<Arc<Listener>> {
        let table = self.lock();
        table.by_session.get(session).into_iter().flatten().map(|key| table.all[*key].clone()).collect()
    }

    /// A log message that belongs to no call: for whom it comes from an instance of, else for the only one who calls at all.
    fn log(&self, upstream: &Arc<str>, whose: &Audience, level: LogLevel, params: Object) {
        let is_for = |listener: &Listener| match whose {
            Audience::Everyone => !self.crowd.is_mixed.load(Ordering::Relaxed),
            Audience::Others(others) => {
                let is_excluded = listener.session.as_ref().is_some_and(|id| others.excludes(id));
                !is_excluded && !self.crowd.is_mixed.load(Ordering::Relaxed)
            }
            Audience::Session(id) => listener.session.as_ref() == Some(id),
            Audience::Principal(whose) => whose.includes(&listener.rights.now().principal),
        };
        let is_told = |listener: &Listener| is_for(listener) && listener.rights.now().grants.sees(upstream);
        let hears = |listener: &Listener| listener.log_level.is_some_and(|wanted| level >= wanted) && is_told(listener);
        let listeners = self.those(hears);
        if listeners.is_empty() {
            if let Some(kept_back) = self.quota.take(upstream) {
                let params = masked_notification(params);
                let (upstream_level, data) = (level.as_str(), params.find("data").unwrap_or_default());
                let data = &*String::from_utf8_lossy(data);
                tracing::info!(target: metrics::UPSTREAM_LOG, upstream = &**upstream, upstream_level, data, kept_back, "upstream log message");
            }
            return;
        }
        // A copy: a part of a line would keep all of it. Only what is told is masked, since that costs much more than the rest.
        let copy = |params: Object| Object::parse(Bytes::copy_from_slice(masked_notification(params).raw())).ok();
        let params = Some(params).filter(|params| params.raw().len() <= LOGS_BYTES_MAX);
        let Some(params) = params.and_then(copy) else { return metrics::dropped("overflow").increment(1) };
        listeners.iter().for_each(|listener| listener.log(level, params.clone()));
    }
}

impl Listener {
    fn is_news(&self, now: &Versions) -> bool {
        self.lock().seen.catalog < now.catalog
    }

    /// Tells of those of the lists that it has not seen as they are now.
    fn tell_news(&self, now: &Versions, kinds: &[Kind]) {
        let before = std::mem::replace(&mut self.lock().seen, *now);
        let is_seen = |kind: Kind| before.lists[kind as usize] == now.lists[kind as usize];
        kinds.iter().filter(|kind| !is_seen(**kind)).for_each(|kind| self.tell(*kind));
    }

    /// Tells the level that it wants, where it wants one.
    fn wants(&self, rights: &SessionRights, levels: &SessionLevels, tell: LevelChange) {
        if let (Some(level), Some(session)) = (self.log_level.filter(|_| self.is_level_named), &self.session) {
            tell(levels, (&rights.principal, &rights.grants), session, level);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, kind: Kind) {
        self.lock().tell(kind, &self.filter);
    }

    fn log(&self, level: LogLevel, params: Object) {
        self.lock().log(level, params, &self.budget);
    }

    /// What is to be heard next; where there is nothing, the waker is kept.
    pub(crate) fn next(&self, waker: &Waker) -> Option<Heard> {
        let mut pending = self.lock();
        let heard = pending.take();
        if heard.is_none() && !pending.waker.as_ref().is_some_and(|kept| kept.will_wake(waker)) {
            pending.waker = Some(waker.clone());
        }
        heard
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.registry.lock().remove(self.key);
        self.listener.wants(&self.listener.rights.seen(), &self.registry.levels, SessionLevels::release);
    }
}
