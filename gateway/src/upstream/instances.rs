//! The instances of an upstream beside the primary one: started when first needed, ended with whom they belong to.

use super::config::Sharing;
use super::holding::{Holder, Holding};
use super::standing::Standing;
use super::{supervisor, words};
use crate::call::{Call, Caller, Ending, Guard, Principal, Refusal, Tenant};
use crate::lifecycle::Tasks;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// An instance without a call for so long may be ended to make room for another.
const ROOM_AFTER: Duration = Duration::from_secs(60);

/// The instances of one upstream.
pub(crate) struct Instances {
    primary: Arc<Standing>,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    /// Where instances live; none is started before it is there.
    level: Option<Tasks>,
    /// How many there have been.
    count: u64,
    open: HashMap<Key, Instance>,
}

/// Whom an instance is found by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Session(Arc<str>),
    Principal(Principal),
}

struct Instance {
    standing: Arc<Standing>,
    /// Its own; `None` while the upstream is not kept alive yet.
    level: Option<Tasks>,
    calls: usize,
    idle_since: Instant,
    /// Told when it becomes idle.
    idle: Arc<Notify>,
}

/// An instance while a call has it.
pub(crate) struct Lease {
    instances: Arc<Instances>,
    key: Key,
    pub(crate) standing: Arc<Standing>,
}

impl Instances {
    /// None yet; `None` where everyone has the primary one.
    pub(crate) fn beside(primary: &Arc<Standing>) -> Option<Arc<Self>> {
        let is_shared = primary.config.sharing == Sharing::Shared;
        (!is_shared).then(|| Arc::new(Self { primary: primary.clone(), table: Mutex::default() }))
    }

    /// The instance for a call, started where there is none yet; `None` where the primary one serves.
    pub(crate) fn lease(self: &Arc<Self>, call: &Call) -> Result<Option<Lease>, Refusal> {
        let Some(key) = self.key(call) else { return Ok(None) };
        let mut table = self.lock();
        if !table.open.contains_key(&key) {
            if table.open.len() >= self.primary.config.max_instances && !self.make_room(&mut table) {
                let config = &self.primary.config;
                return Err(words::crowded(&self.primary.name, call, config.max_instances, config.sharing));
            }
            let instance = self.make(&mut table, call);
            self.start(&table, &key, instance.level.as_ref(), &instance);
            table.open.insert(key.clone(), instance);
            self.primary.metrics.instances.set(table.open.len() as f64);
            if let (Key::Session(_), Some(tenant)) = (&key, &call.caller.tenant) {
                tenant.got_instance();
            }
        }
        let instance = table.open.get_mut(&key).expect("it was put there where it was not");
        instance.calls += 1;
        Ok(Some(Lease { instances: self.clone(), key, standing: instance.standing.clone() }))
    }

    /// The instance that a caller has already.
    pub(crate) fn find(&self, call: &Call) -> Option<Arc<Standing>> {
        let key = self.key(call)?;
        self.lock().open.get(&key).map(|instance| instance.standing.clone())
    }

    /// The instance that a session has to itself.
    pub(crate) fn of_session(&self, tenant: &Arc<Tenant>) -> Option<Arc<Standing>> {
        self.lock().open.get(&Key::Session(tenant.id().clone())).map(|instance| instance.standing.clone())
    }

    /// All there are.
    pub(crate) fn all(&self) -> Vec<Arc<Standing>> {
        self.lock().open.values().map(|instance| instance.standing.clone()).collect()
    }

    /// From now on instances are kept alive, those too that calls wait for already.
    pub(crate) fn keep_alive(self: &Arc<Self>, tasks: &Tasks) {
        let mut table = self.lock();
        table.level = Some(tasks.clone());
        for instance in table.open.values_mut() {
            instance.level = Some(tasks.child());
        }
        for (key, instance) in &table.open {
            self.start(&table, key, instance.level.as_ref(), instance);
        }
    }

    fn key(&self, call: &Call) -> Option<Key> {
        let Caller { tenant, principal, .. } = &*call.caller;
        match (self.primary.config.sharing, tenant) {
            (Sharing::Shared, _) => None,
            (Sharing::PerSession, Some(tenant)) => Some(Key::Session(tenant.id().clone())),
            // All who call are one: the primary is theirs.
            (Sharing::PerPrincipal, _) if *principal == Principal::anonymous() => None,
            _ => Some(Key::Principal(principal.clone())),
        }
    }

    /// Ends what was longest without a call, where that is long enough.
    fn make_room(&self, table: &mut Table) -> bool {
        let idle = table.open.iter().filter(|(_, one)| one.calls == 0 && one.idle_since.elapsed() >= ROOM_AFTER);
        let Some(key) = idle.min_by_key(|(_, one)| one.idle_since).map(|(key, _)| key.clone()) else { return false };
        if let Some(level) = table.open.remove(&key).and_then(|instance| instance.level) {
            level.end();
        }
        true
    }

    fn make(&self, table: &mut Table, call: &Call) -> Instance {
        table.count += 1;
        let (sharing, caller) = (self.primary.config.sharing, &call.caller);
        let (holding, whose) = match &caller.tenant {
            Some(tenant) if sharing == Sharing::PerSession => {
                (Holding::session(tenant, caller.beyond()), format!("session {}", table.count))
            }
            _ => {
                (Holding::principal(&self.primary.config, &caller.principal, caller.beyond()), shown(&caller.principal))
            }
        };
        let seat = self.primary.seat.instance(&whose.into(), table.count);
        let standing = Arc::new(Standing::beside(&self.primary, holding, seat, table.count));
        let level = table.level.as_ref().map(Tasks::child);
        Instance { standing, level, calls: 0, idle_since: Instant::now(), idle: Arc::default() }
    }

    /// Has an instance kept alive until nobody needs it any more.
    fn start(self: &Arc<Self>, table: &Table, key: &Key, level: Option<&Tasks>, instance: &Instance) {
        let (Some(parent), Some(level)) = (&table.level, level) else { return };
        let (instances, key, level) = (self.clone(), key.clone(), level.clone());
        let (standing, idle) = (instance.standing.clone(), instance.idle.clone());
        level.spawn(supervisor::supervise(standing.clone(), standing.ticket(), level.clone()));
        parent.spawn(async move {
            tokio::select! {
                () = level.ending() => {}
                () = instances.unneeded(&key, &standing, &idle) => {}
                () = instances.primary.need.turned_off() => {}
            }
            instances.forget(&key, &standing);
            level.end();
            // Its seat is kept until it is proved that nothing of it is left.
            level.ended().await;
            standing.seat.leave();
        });
    }

    /// Resolves when whom it belongs to has gone, or has not called for long.
    async fn unneeded(&self, key: &Key, standing: &Arc<Standing>, idle: &Notify) {
        if let Holder::Session(tenant) = &standing.holding.holder {
            return tenant.ended().await;
        }
        loop {
            let until = {
                let mut table = self.lock();
                match table.open.get(key).filter(|instance| Arc::ptr_eq(&instance.standing, standing)) {
                    None => return,
                    Some(instance) if instance.calls > 0 => None,
                    Some(instance) => {
                        let until = instance.idle_since + standing.config.instance_idle;
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
                Some(until) => sleep_until(until).await,
                None => idle.notified().await,
            }
        }
    }

    fn forget(&self, key: &Key, standing: &Arc<Standing>) {
        let mut table = self.lock();
        if table.open.get(key).is_some_and(|instance| Arc::ptr_eq(&instance.standing, standing)) {
            table.open.remove(key);
        }
        self.primary.metrics.instances.set(table.open.len() as f64);
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
        let Some(instance) = table.open.get_mut(&self.key) else { return };
        if !Arc::ptr_eq(&instance.standing, &self.standing) {
            return;
        }
        instance.calls -= 1;
        if instance.calls == 0 {
            instance.idle_since = Instant::now();
            instance.idle.notify_one();
        }
    }
}
