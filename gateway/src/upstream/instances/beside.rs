//! The instances of an upstream beside the primary one: started when first needed, ended with whom they belong to.

use super::personal::{PersonalLists, Seat, needs_login};
use crate::call::Call;
use crate::call::caller::{Caller, ClientSession, Principal};
use crate::call::refusal::Refusal;
use crate::call::reply::{Ending, Guard};
use crate::call::share::Share;
use crate::health::CauseCode;
use crate::protocol::revision::Era;
use crate::runtime::Tasks;
use crate::runtime::timer::late::passed;
use crate::upstream::calls::messages;
use crate::upstream::config::{Credentials, EraChoice, Sharing};
use crate::upstream::instance::Instance;
use crate::upstream::instance::inventory::Inventory;
use crate::upstream::owner::{Holder, Ownership};
use crate::upstream::supervise::{control, grace, supervise};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// An instance without a call for so long may be ended to make room for another.
const ROOM_AFTER: Duration = Duration::from_secs(60);

/// The instances of one upstream.
pub(crate) struct Instances {
    primary: Arc<Instance>,
    table: Mutex<Table>,
    /// What is offered to each principal, where each has a login of its own.
    lists: Option<PersonalLists>,
}

#[derive(Default)]
struct Table {
    /// Where instances live; none is started before it is there.
    level: Option<Tasks>,
    /// How many there have been.
    count: u64,
    open: HashMap<Key, InstanceEntry>,
}

/// Whom an instance is found by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Session(Arc<str>),
    /// Of an era, where the upstream can be spoken to in both; for access tokens that allow this, where they are exchanged.
    Principal(Principal, Option<[u8; 32]>, Option<Era>),
}

struct InstanceEntry {
    instance: Arc<Instance>,
    /// Its own; `None` while the upstream is not kept alive yet.
    level: Option<Tasks>,
    calls: usize,
    idle_since: Instant,
    /// Told when it becomes idle.
    idle: Arc<Notify>,
}

impl InstanceEntry {
    /// Whose share it takes.
    fn share(&self) -> &Share {
        self.instance.owner.share.as_ref().unwrap_or(&Share::Unknown)
    }
}

/// An instance while a call has it.
pub(crate) struct Lease {
    instances: Arc<Instances>,
    key: Key,
    pub(crate) instance: Arc<Instance>,
}

impl Instances {
    /// None yet; `None` where everyone has the primary one.
    pub(crate) fn beside(primary: &Arc<Instance>) -> Option<Arc<Self>> {
        let is_shared = primary.config.is_shared();
        let lists = primary.config.has_personal_logins().then(PersonalLists::default);
        (!is_shared).then(|| Arc::new(Self { primary: primary.clone(), table: Mutex::default(), lists }))
    }

    /// The instance for a call, started where there is none yet; `None` where the primary one serves.
    pub(crate) fn lease(self: &Arc<Self>, call: &Call) -> Result<Option<Lease>, Refusal> {
        let Some(key) = self.key(call) else { return Ok(None) };
        let mut table = self.lock();
        if !table.open.contains_key(&key) {
            if !self.has_room(&mut table, &call.caller.share()) {
                let config = &self.primary.config;
                let refusal = messages::crowded(
                    &self.primary.name,
                    call,
                    (table.open.len(), config.max_instances),
                    config.sharing,
                );
                drop(table);
                self.primary.status.failed("busy", CauseCode::QueueFull, &refusal.message);
                return Err(refusal);
            }
            let entry = self.make(&mut table, call);
            self.start(&table, &key, &entry);
            table.open.insert(key.clone(), entry);
            self.primary.status.metrics.instances.set(table.open.len() as f64);
            if let (Key::Session(_), Some(tenant)) = (&key, &call.caller.tenant) {
                tenant.got_instance();
            }
        }
        let entry = table.open.get_mut(&key).expect("it was put there where it was not");
        entry.calls += 1;
        Ok(Some(Lease { instances: self.clone(), key, instance: entry.instance.clone() }))
    }

    /// The instance that a caller has already.
    pub(crate) fn find(&self, call: &Call) -> Option<Arc<Instance>> {
        let key = self.key(call)?;
        self.lock().open.get(&key).map(|entry| entry.instance.clone())
    }

    /// The instance that a session has to itself.
    pub(crate) fn of_session(&self, tenant: &Arc<ClientSession>) -> Option<Arc<Instance>> {
        self.lock().open.get(&Key::Session(tenant.id().clone())).map(|entry| entry.instance.clone())
    }

    /// What is offered to a principal with a login of its own, as it changes; `None` where nobody has one.
    pub(crate) fn offered_to(
        &self,
        principal: &Principal,
        era: Era,
    ) -> Option<watch::Receiver<Option<Arc<Inventory>>>> {
        Some(self.lists.as_ref()?.of(principal, self.era(era)).subscribe())
    }

    /// Those of one principal: one, or one for each era.
    pub(crate) fn of_principal(&self, principal: &Principal) -> Vec<Arc<Instance>> {
        let table = self.lock();
        let is_its = |key: &Key| matches!(key, Key::Principal(whose, ..) if whose == principal);
        table.open.iter().filter(|(key, _)| is_its(key)).map(|(_, entry)| entry.instance.clone()).collect()
    }

    /// Where a principal has its place, or why it finds none.
    pub(crate) fn seat(&self, principal: &Principal) -> Seat {
        let instances = self.of_principal(principal);
        // Whose share it is counts only where some of it is taken.
        let finds_none = || self.place(&self.lock(), &Share::Unknown).is_none();
        match instances.is_empty() && finds_none() {
            true => Seat::crowded(self.primary.config.max_instances),
            false => Seat::of(instances),
        }
    }

    /// All there are.
    pub(crate) fn all(&self) -> Vec<Arc<Instance>> {
        self.lock().open.values().map(|entry| entry.instance.clone()).collect()
    }

    /// From now on instances are kept alive, those too that calls wait for already.
    pub(crate) fn keep_alive(self: &Arc<Self>, tasks: &Tasks) {
        let mut table = self.lock();
        table.level = Some(tasks.clone());
        for entry in table.open.values_mut() {
            entry.level = Some(tasks.child());
        }
        for (key, entry) in &table.open {
            self.start(&table, key, entry);
        }
    }

    fn key(&self, call: &Call) -> Option<Key> {
        let Caller { tenant, principal, .. } = &*call.caller;
        match (self.primary.config.sharing, tenant) {
            (Sharing::Shared | Sharing::OwnSessions, _) => None,
            (Sharing::PerSession, Some(tenant)) => Some(Key::Session(tenant.id().clone())),
            // All who call are one: the primary is theirs, unless that bears what is the gateway's own.
            (Sharing::PerPrincipal, _) if principal.is_anonymous() && !self.has_own_tokens() => None,
            _ => {
                let allows = principal.allows().filter(|_| self.exchanges());
                Some(Key::Principal(principal.clone(), allows, self.era(call.revision().era())))
            }
        }
    }

    /// Whether each client has a token of its own with the upstream.
    fn has_own_tokens(&self) -> bool {
        self.lists.is_some() || self.exchanges()
    }

    /// Whether the access tokens of clients are exchanged: then each serves its own calls alone.
    fn exchanges(&self) -> bool {
        self.primary.config.credentials.as_ref().is_some_and(Credentials::is_exchange)
    }

    /// The era of a principal's instance for clients of this one; `None` where one child serves clients of both.
    fn era(&self, of_clients: Era) -> Option<Era> {
        let config = &self.primary.config;
        let is_of_one = config.is_http() || config.has_both_eras || config.sharing == Sharing::PerSession;
        (config.era == EraChoice::Auto && is_of_one).then_some(of_clients)
    }

    /// Whether another instance of this share may be started, after an idle one was ended where there were too many.
    fn has_room(&self, table: &mut Table, share: &Share) -> bool {
        let Some(in_place_of) = self.place(table, share) else { return false };
        let ended = in_place_of.and_then(|key| table.open.remove(&key));
        ended.and_then(|entry| entry.level).into_iter().for_each(|level| level.end());
        true
    }

    /// The place for another instance of this share: a free one, or that of an idle one; `None` where there is none.
    #[allow(clippy::mutable_key_type, reason = "what a principal counts of its own is no part of who it is")]
    fn place(&self, table: &Table, share: &Share) -> Option<Option<Key>> {
        let (open, most) = (table.open.len(), self.primary.config.max_instances);
        let mut counts: HashMap<&Share, usize> = HashMap::new();
        table.open.values().for_each(|one| *counts.entry(one.share()).or_default() += 1);
        let own = counts.get(share).copied().unwrap_or_default();
        // Where others can come who are told apart, the last quarter is not for who has the rest.
        let has_part = self.primary.config.principals < 2 || own == 0 || own < 3 * (most - open.min(most));
        if open < most && has_part {
            return Some(None);
        }
        let most_of_one = counts.into_iter().max_by_key(|(_, count)| *count).filter(|(_, count)| *count > own + 1);
        let of = most_of_one.map(|(share, _)| share.clone());
        let idle = match of {
            // It has more than its part: whatever of it is idle goes.
            Some(of) if open >= most => self.idle(table, Duration::ZERO, |other| *other == of),
            _ if own > 0 => self.idle(table, ROOM_AFTER, |other| other == share),
            _ => self.idle(table, ROOM_AFTER, |_| true),
        };
        idle.map(Some)
    }

    /// What of these shares was longest without a call, where that is long enough.
    fn idle(&self, table: &Table, after: Duration, is_of: impl Fn(&Share) -> bool) -> Option<Key> {
        // One that waits for a person to log in has no connection, and what it offers is kept.
        let waits = |one: &InstanceEntry| self.lists.is_some() && needs_login(&one.instance);
        let is_idle = |one: &InstanceEntry| {
            one.calls == 0 && is_of(one.share()) && (one.idle_since.elapsed() >= after || waits(one))
        };
        let idle = table.open.iter().filter(|(_, one)| is_idle(one));
        idle.min_by_key(|(_, one)| (!waits(one), one.idle_since)).map(|(key, _)| key.clone())
    }

    fn make(&self, table: &mut Table, call: &Call) -> InstanceEntry {
        table.count += 1;
        let (sharing, caller) = (self.primary.config.sharing, &call.caller);
        let (owner, whose) = match &caller.tenant {
            Some(tenant) if sharing == Sharing::PerSession => {
                (Ownership::session(tenant, caller.beyond()), format!("session {}", table.count))
            }
            _ => (
                Ownership::principal(&self.primary.config, &caller.principal, caller.beyond()),
                shown(&caller.principal),
            ),
        };
        let handle = self.primary.status.handle.instance(&whose.into(), table.count);
        let owner = owner.with_share(caller.share());
        let era = self.era(call.revision().era());
        if let Some(era) = era {
            owner.is_of_era(era);
        }
        let known = self.lists.as_ref().map(|lists| lists.of(&caller.principal, era));
        let instance = Arc::new(Instance::beside(&self.primary, (owner, known), handle, table.count));
        let level = table.level.as_ref().map(Tasks::child);
        InstanceEntry { instance, level, calls: 0, idle_since: Instant::now(), idle: Arc::default() }
    }

    /// Has an instance kept alive until nobody needs it any more.
    fn start(self: &Arc<Self>, table: &Table, key: &Key, entry: &InstanceEntry) {
        let (Some(parent), Some(level)) = (&table.level, &entry.level) else { return };
        let (instances, key, level) = (self.clone(), key.clone(), level.clone());
        let (instance, idle) = (entry.instance.clone(), entry.idle.clone());
        level.spawn(supervise(instance.clone(), control::ticket(&instance), level.clone()));
        parent.spawn(async move {
            tokio::select! {
                () = level.ending() => {}
                () = instances.unneeded(&key, &instance, &idle) => {}
                () = instances.primary.admission.demand.turned_off() => {}
                at_once = instances.primary_was_restarted() => {
                    // Calls that come from now on have another one.
                    instances.forget(&key, &instance);
                    if !at_once {
                        grace::calls_end(&instance).await;
                    }
                }
            }
            instances.forget(&key, &instance);
            instance.status.ends();
            level.end();
            // Its place on the board is kept until it is proved that nothing of it is left.
            level.ended().await;
            instance.status.handle.leave();
        });
    }

    /// Resolves when an order ends what there is of the upstream, where the primary one has nothing that it could end itself; whether at once.
    async fn primary_was_restarted(&self) -> bool {
        match self.lists {
            Some(_) => self.primary.admission.demand.ordered().await,
            None => std::future::pending().await,
        }
    }

    /// Resolves when whom it belongs to has gone, or has not called for long.
    async fn unneeded(&self, key: &Key, instance: &Arc<Instance>, idle: &Notify) {
        if let Holder::Session(tenant) = &instance.owner.holder {
            return tenant.ended().await;
        }
        loop {
            let until = {
                let mut table = self.lock();
                match table.open.get(key).filter(|entry| Arc::ptr_eq(&entry.instance, instance)) {
                    None => return,
                    Some(entry) if entry.calls > 0 => None,
                    Some(entry) => {
                        let until = entry.idle_since + instance.config.instance_idle;
                        if until <= Instant::now() {
                            // Under the same lock as it was looked at: no call can get hold of it any more.
                            table.open.remove(key);
                            return;
                        }
                        Some(until)
                    }
                }
            };
            match until {
                Some(until) => passed(until).await,
                None => idle.notified().await,
            }
        }
    }

    fn forget(&self, key: &Key, instance: &Arc<Instance>) {
        let mut table = self.lock();
        if table.open.get(key).is_some_and(|entry| Arc::ptr_eq(&entry.instance, instance)) {
            table.open.remove(key);
        }
        self.primary.status.metrics.instances.set(table.open.len() as f64);
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A principal for people.
fn shown(principal: &Principal) -> String {
    match principal.name() {
        "" => "anonymous".to_owned(),
        name => name.to_owned(),
    }
}

impl Guard for Lease {
    fn done(&mut self, _: &Ending<'_>) {}
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut table = self.instances.lock();
        let Some(entry) = table.open.get_mut(&self.key) else { return };
        if !Arc::ptr_eq(&entry.instance, &self.instance) {
            return;
        }
        entry.calls -= 1;
        if entry.calls == 0 {
            entry.idle_since = Instant::now();
            entry.idle.notify_one();
        }
    }
}
