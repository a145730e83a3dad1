//! Who listens: the registry of live listen replies. What they have to hear waits coalesced with each, never in a queue.

use super::kind::Kind;
use super::quota::Quota;
use super::statuses::Statuses;
use crate::call::{Call, Change, Grants, ListenFilter, LogLevel, Principal};
use crate::protocol::Object;
use crate::signals;
use crate::upstream::{Audience, Notice};
use slab::Slab;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;
use tokio::sync::watch;

/// So many log messages wait for one listener; then the oldest goes.
const LOGS_MAX: usize = 64;
/// So many may listen at once.
const LISTENERS_MAX: usize = 32 * 1024;
/// So many of them may be listen calls of one principal; those of handshake sessions are bounded with their sessions.
const OF_ONE_MAX: usize = 256;

/// All live listen replies. Cheap to clone; made before the upstreams, whose notices it takes.
#[derive(Clone, Default)]
pub struct Listeners(Arc<Registry>);

#[derive(Default)]
struct Registry {
    table: Mutex<Slab<Arc<Listener>>>,
    /// The most verbose level at which any of them wants log messages.
    level: watch::Sender<Option<LogLevel>>,
    crowd: Crowd,
    is_closed: AtomicBool,
    quota: Quota,
    statuses: Arc<Statuses>,
}

/// Whether all who ever called are one principal: only then may it hear what belongs to no call.
#[derive(Default)]
struct Crowd {
    first: OnceLock<Principal>,
    is_mixed: AtomicBool,
}

/// One listen reply's side of the registry.
pub(super) struct Listener {
    filter: ListenFilter,
    principal: Principal,
    /// The session that holds it.
    session: Option<Arc<str>>,
    /// Whether that sees a catalog of its own.
    has_view: bool,
    /// The version of the catalog that was in force when it had its place: of that one, and those before, it need not be told.
    seen: AtomicU64,
    grants: Grants,
    /// From which level on a legacy session hears log messages.
    log_level: Option<LogLevel>,
    pending: Mutex<Pending>,
}

#[derive(Default)]
struct Pending {
    tools: bool,
    prompts: bool,
    resources: bool,
    logs: VecDeque<(LogLevel, Object)>,
    is_closed: bool,
    waker: Option<Waker>,
}

/// What a listener hears next.
#[derive(Debug)]
pub(super) enum Heard {
    Change(Change),
    Log(LogLevel, Object),
    /// The gateway ends.
    Closed,
}

/// A place in the registry; dropping it leaves.
pub(super) struct Registration {
    registry: Arc<Registry>,
    key: usize,
    pub(super) listener: Arc<Listener>,
}

impl Registration {
    /// The catalog of this version is in force: what changed before is no news to whoever listens from now on.
    pub(super) fn saw(&self, version: u64) {
        self.listener.seen.store(version, Ordering::Release);
    }
}

impl Listeners {
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
    pub(super) fn statuses(&self) -> &Arc<Statuses> {
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
    pub(super) fn note(&self, caller: &Principal) {
        let crowd = &self.0.crowd;
        if crowd.first.get_or_init(|| caller.clone()) != caller && !crowd.is_mixed.load(Ordering::Relaxed) {
            crowd.is_mixed.store(true, Ordering::Relaxed);
        }
    }

    /// Takes a place for a listen call, or says of what there are too many.
    pub(super) fn register(&self, call: &Call, filter: ListenFilter, has_view: bool) -> Result<Registration, String> {
        let listener = Arc::new(Listener {
            filter,
            principal: call.caller.principal.clone(),
            session: call.caller.tenant.as_ref().map(|tenant| tenant.id().clone()),
            has_view,
            seen: AtomicU64::new(0),
            grants: call.caller.grants.clone(),
            log_level: call.log_level.filter(|_| call.caller.tenant.is_some()),
            pending: Mutex::default(),
        });
        let mut table = self.0.lock();
        if table.len() >= LISTENERS_MAX {
            return Err("too many listen already".to_owned());
        }
        let is_own =
            |(_, other): &(usize, &Arc<Listener>)| other.session.is_none() && other.principal == listener.principal;
        if listener.session.is_none() && table.iter().filter(is_own).count() >= OF_ONE_MAX {
            return Err(format!("{OF_ONE_MAX} listen calls of this principal are open already; end one first"));
        }
        let key = table.insert(listener.clone());
        drop(table);
        self.0.settle_level(listener.log_level);
        if self.0.is_closed.load(Ordering::Acquire) {
            listener.lock().close();
        }
        Ok(Registration { registry: self.0.clone(), key, listener })
    }

    /// Tells every listener without a view of its own of the lists that changed for it up to a version of the catalog; says
    /// whether there was anything to tell.
    pub(super) fn tell(&self, version: u64, changes: impl Fn(&Grants) -> Vec<Kind>) -> bool {
        let is_news = |listener: &Listener| listener.seen.load(Ordering::Acquire) < version;
        tell(self.0.those(|listener| !listener.has_view && is_news(listener)), changes)
    }

    /// The same for the listeners of a session that has a view of its own.
    pub(super) fn tell_session(&self, session: &str, changes: impl Fn(&Grants) -> Vec<Kind>) -> bool {
        tell(self.0.those(|listener| listener.has_view && listener.session.as_deref() == Some(session)), changes)
    }

    /// The most verbose level that is wanted, as it changes.
    pub(super) fn level(&self) -> watch::Receiver<Option<LogLevel>> {
        self.0.level.subscribe()
    }
}

/// Tells these listeners.
fn tell(listeners: Vec<Arc<Listener>>, changes: impl Fn(&Grants) -> Vec<Kind>) -> bool {
    let mut by_grants: Vec<(Grants, Vec<Kind>)> = vec![(Grants::all(), changes(&Grants::all()))];
    for listener in listeners {
        let known = by_grants.iter().position(|(grants, _)| *grants == listener.grants);
        let at = known.unwrap_or_else(|| {
            by_grants.push((listener.grants.clone(), changes(&listener.grants)));
            by_grants.len() - 1
        });
        by_grants[at].1.iter().for_each(|kind| listener.tell(*kind));
    }
    by_grants.iter().any(|(_, kinds)| !kinds.is_empty())
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, Slab<Arc<Listener>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Some of them now: the table is not held while they are told.
    fn those(&self, which: impl Fn(&Listener) -> bool) -> Vec<Arc<Listener>> {
        self.lock().iter().filter(|(_, listener)| which(listener)).map(|(_, listener)| listener.clone()).collect()
    }

    /// A log message that belongs to no call: for whom it comes from an instance of, else for the only one who calls at all.
    fn log(&self, upstream: &Arc<str>, whose: &Audience, level: LogLevel, params: Object) {
        let is_for = |listener: &Listener| match whose {
            Audience::Everyone => !self.crowd.is_mixed.load(Ordering::Relaxed),
            Audience::Session(id) => listener.session.as_ref() == Some(id),
            Audience::Principal(principal) => listener.principal == *principal,
        };
        let hears = |listener: &Listener| listener.log_level.is_some_and(|wanted| level >= wanted) && is_for(listener);
        let listeners = self.those(hears);
        if listeners.is_empty() {
            if let Some(kept_back) = self.quota.take(upstream) {
                let (level, data) = (level.as_str(), params.find("data").unwrap_or_default());
                let data = &*String::from_utf8_lossy(data);
                tracing::info!(target: signals::UPSTREAM_LOG, upstream = &**upstream, level, data, kept_back, "log message of an upstream");
            }
            return;
        }
        listeners.iter().for_each(|listener| listener.log(level, params.clone()));
    }

    /// Works out the wanted level anew, where one listener's coming or going may change it.
    fn settle_level(&self, of_one: Option<LogLevel>) {
        if of_one.is_some() {
            let table = self.lock();
            let level = table.iter().filter_map(|(_, listener)| listener.log_level).min();
            self.level.send_if_modified(|wanted| std::mem::replace(wanted, level) != level);
        }
    }
}

impl Listener {
    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, kind: Kind) {
        let mut pending = self.lock();
        let pending = &mut *pending;
        let (flag, is_wanted) = match kind {
            Kind::Tools => (&mut pending.tools, self.filter.tools),
            Kind::Prompts => (&mut pending.prompts, self.filter.prompts),
            Kind::Resources | Kind::Templates => (&mut pending.resources, self.filter.resources),
        };
        if is_wanted {
            *flag = true;
            pending.wake();
        }
    }

    fn log(&self, level: LogLevel, params: Object) {
        let mut pending = self.lock();
        if pending.logs.len() == LOGS_MAX {
            pending.logs.pop_front();
            signals::dropped("overflow").increment(1);
        }
        pending.logs.push_back((level, params));
        pending.wake();
    }

    /// What is to be heard next; where there is nothing, the waker is kept.
    pub(super) fn next(&self, waker: &Waker) -> Option<Heard> {
        let mut pending = self.lock();
        let heard = pending.take();
        if heard.is_none() && !pending.waker.as_ref().is_some_and(|kept| kept.will_wake(waker)) {
            pending.waker = Some(waker.clone());
        }
        heard
    }
}

impl Pending {
    fn take(&mut self) -> Option<Heard> {
        let flags = [
            (&mut self.tools, Change::Tools),
            (&mut self.prompts, Change::Prompts),
            (&mut self.resources, Change::Resources),
        ];
        for (flag, change) in flags {
            if std::mem::take(flag) {
                return Some(Heard::Change(change));
            }
        }
        let log = self.logs.pop_front().map(|(level, params)| Heard::Log(level, params));
        log.or_else(|| self.is_closed.then_some(Heard::Closed))
    }

    fn close(&mut self) {
        self.is_closed = true;
        self.wake();
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.registry.lock().remove(self.key);
        self.registry.settle_level(self.listener.log_level);
    }
}
