//! One budget for all that peers make the gateway keep: counted in steps; once it is spent, the client that holds most loses.

use super::account::{Account, Hold, Kind, Owner, Whose};
use super::clients::Clients;
use crate::runtime::complaints::{Complaints, left_unsaid};
use slab::Slab;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::sync::Notify;

/// A holder of no more than this is not counted: plain calls pay nothing.
pub const UNCOUNTED: usize = 16 * 1024;
/// Holders are counted in steps of this.
const STEP: usize = 16 * 1024;
/// Once so much was given up, the allocator is reminded to give memory back.
const PURGE_BYTES: usize = 1024 * 1024;
/// How often it is said that a holder has lost.
const SAY_EVERY: Duration = Duration::from_secs(60);

/// The budget is spent, and no holder is larger than the one that asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the gateway has no memory left for it (`server.memory_limit`)")]
pub struct Spent;

/// What all peers together may make the gateway keep. Cheap to clone; clones are the same budget.
#[derive(Debug, Clone)]
pub struct Budget(Arc<Ledger>, Whose);

#[derive(Debug)]
pub(super) struct Ledger {
    limit: usize,
    used: AtomicUsize,
    kinds: [AtomicUsize; Kind::ALL.len()],
    lost: [AtomicU64; Kind::ALL.len()],
    /// Those that are counted; each has a step at least, so the limit bounds them.
    accounts: Mutex<Slab<Weak<Account>>>,
    /// How much was given up since the allocator was last reminded.
    given_up: AtomicUsize,
    purge: Notify,
    complaints: Complaints,
    /// Those that a task is to wake.
    deferred: Mutex<Vec<Waker>>,
    defers: Notify,
    /// What stays as long as sessions and subscriptions do.
    pub(super) sessions: Mutex<Standing>,
    /// What stays as long as an upstream offers it.
    pub(super) lists: Mutex<Standing>,
}

/// What stands now: see [`super::standing`].
#[derive(Debug, Default)]
pub(super) struct Standing {
    pub(super) all: usize,
    /// Nobody stands here with nothing.
    pub(super) by: HashMap<StandsFor, Own>,
}

/// For whom something stands: a client, an upstream, or neither.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct StandsFor {
    client: Option<u64>,
    upstream: Option<Arc<str>>,
}

#[derive(Debug, Default)]
pub(super) struct Own {
    pub(super) bytes: usize,
    pub(super) charge: Charge,
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(usize::MAX)
    }
}

impl Budget {
    /// A budget of so many bytes. Holders begin to lose at three quarters of it: what is left is for what is on its way out.
    pub fn new(limit: usize) -> Self {
        let ledger = Ledger {
            limit,
            used: AtomicUsize::new(0),
            kinds: Default::default(),
            lost: Default::default(),
            accounts: Mutex::default(),
            given_up: AtomicUsize::new(0),
            purge: Notify::new(),
            complaints: Complaints::every(SAY_EVERY),
            deferred: Mutex::default(),
            defers: Notify::new(),
            sessions: Mutex::default(),
            lists: Mutex::default(),
        };
        Self(Arc::new(ledger), Whose::default())
    }

    /// The same budget; what is counted through it is weighed with all that this client holds.
    #[must_use]
    pub fn owned_by(&self, owner: Owner) -> Self {
        Self(self.0.clone(), Whose { owner: Some(owner), upstream: self.1.upstream.clone() })
    }

    /// The same budget; what is counted through it is kept on behalf of this upstream.
    #[must_use]
    pub fn of_upstream(&self, upstream: &Arc<str>) -> Self {
        Self(self.0.clone(), Whose { owner: self.1.owner.clone(), upstream: Some(upstream.clone()) })
    }

    /// The limit; `None` where there is none.
    pub fn limit(&self) -> Option<usize> {
        (self.0.limit < usize::MAX).then_some(self.0.limit)
    }

    /// The longest message that can pass, while nothing else is kept: on its way out it is counted a second time.
    pub fn longest(&self) -> usize {
        self.0.limit / 2
    }

    /// For whom stands what is counted through it.
    pub(super) fn stands_for(&self) -> StandsFor {
        StandsFor { client: self.1.owner.as_ref().map(Owner::key), upstream: self.1.upstream.clone() }
    }

    pub(super) fn ledger(&self) -> &Ledger {
        &self.0
    }

    /// How much is counted now.
    pub fn used(&self) -> usize {
        self.0.used.load(Ordering::Relaxed)
    }

    /// How much of it is of a kind.
    pub fn used_by(&self, kind: Kind) -> usize {
        self.0.kinds[kind as usize].load(Ordering::Relaxed)
    }

    /// How many holders of a kind have lost what they held.
    pub fn lost_by(&self, kind: Kind) -> u64 {
        self.0.lost[kind as usize].load(Ordering::Relaxed)
    }

    /// Counts what is all there already; `None` where there is no room for it.
    pub fn charge(&self, kind: Kind, bytes: usize) -> Result<Charge, Spent> {
        let mut charge = Charge::default();
        charge.grow(self, kind, bytes)?;
        Ok(charge)
    }

    /// Counts what is there and whose number is bounded elsewhere, whether there is room for it or not: others make room.
    pub(crate) fn count(&self, kind: Kind, bytes: usize) -> Charge {
        let account = self.0.open(kind, &self.1);
        let bytes = bytes.div_ceil(STEP).saturating_mul(STEP);
        let used = self.0.used.fetch_add(bytes, Ordering::AcqRel).saturating_add(bytes);
        if used > self.0.begins_at() {
            self.0.make_room(&account, bytes, used);
        }
        self.0.kinds[kind as usize].fetch_add(bytes, Ordering::Relaxed);
        account.set(bytes);
        Charge(Some((self.0.clone(), account)))
    }

    /// Resolves once [`Self::wake_deferred`] has something to do.
    pub(crate) async fn defers(&self) {
        self.0.defers.notified().await;
    }

    /// Wakes those that could not be where they lost.
    pub(crate) fn wake_deferred(&self) {
        let deferred = std::mem::take(&mut *self.0.deferred.lock().unwrap_or_else(PoisonError::into_inner));
        deferred.into_iter().for_each(Waker::wake);
    }

    /// Resolves once much was given up since it last did.
    pub(crate) async fn gave_up_much(&self) {
        self.0.purge.notified().await;
        self.0.given_up.store(0, Ordering::Relaxed);
    }
}

/// What one holder keeps, counted until this is dropped. An empty one costs nothing.
#[derive(Debug, Default)]
pub struct Charge(Option<(Arc<Ledger>, Arc<Account>)>);

impl Charge {
    /// Counts so many bytes in all from now on. On an error nothing more is counted, and the holder gives up what it has, or
    /// refuses what is new.
    pub fn grow(&mut self, budget: &Budget, kind: Kind, to: usize) -> Result<(), Spent> {
        if to <= UNCOUNTED && self.0.is_none() {
            return Ok(());
        }
        let (ledger, account) = self.0.get_or_insert_with(|| (budget.0.clone(), budget.0.open(kind, &budget.1)));
        if account.has_lost() {
            return Err(Spent);
        }
        let (to, have) = (to.div_ceil(STEP).saturating_mul(STEP), account.bytes());
        if to <= have { Ok(()) } else { ledger.grow(account, to) }
    }

    /// Counts so many bytes in all from now on, which are fewer.
    pub fn shrink(&mut self, to: usize) {
        match &self.0 {
            Some(_) if to <= UNCOUNTED => *self = Self::default(),
            Some((ledger, account)) => ledger.shrink(account, to.div_ceil(STEP).saturating_mul(STEP)),
            None => {}
        }
    }

    /// Ready once it is to be given up. From the first call on, until [`Self::keep`], it can be.
    pub fn poll_lost(&self, cx: &Context<'_>) -> Poll<()> {
        self.0.as_ref().map_or(Poll::Pending, |(_, account)| account.poll_lost(cx))
    }

    /// As [`Self::poll_lost`], where nobody polls: `give_up` is woken, by a task that holds no lock, and takes what it needs.
    pub fn give_up_by(&self, give_up: &Waker) -> Poll<()> {
        self.0.iter().for_each(|(_, account)| account.defer());
        self.poll_lost(&Context::from_waker(give_up))
    }

    /// It is handed on, and cannot be taken away meanwhile.
    pub fn keep(&self) {
        self.0.iter().for_each(|(_, account)| account.keep());
    }

    /// For whoever waits while somebody else has what is kept; `None` where it is not counted.
    pub fn hold(&self) -> Option<Hold> {
        self.0.as_ref().map(|(_, account)| Hold::of(account))
    }

    /// Whether anything is counted.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if let Some((ledger, account)) = &self.0 {
            ledger.close(account);
        }
    }
}

impl Ledger {
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    fn open(&self, kind: Kind, whose: &Whose) -> Arc<Account> {
        let mut accounts = self.lock();
        let entry = accounts.vacant_entry();
        let account = Arc::new(Account::new(kind, entry.key(), whose.clone()));
        entry.insert(Arc::downgrade(&account));
        account
    }

    fn grow(&self, account: &Account, to: usize) -> Result<(), Spent> {
        let more = to - account.bytes();
        let used = self.used.fetch_add(more, Ordering::AcqRel).saturating_add(more);
        if used > self.begins_at() && !self.make_room(account, to, used) {
            self.say(account, to);
            self.used.fetch_sub(more, Ordering::AcqRel);
            self.lost[account.kind as usize].fetch_add(1, Ordering::Relaxed);
            return Err(Spent);
        }
        self.kinds[account.kind as usize].fetch_add(more, Ordering::Relaxed);
        account.set(to);
        Ok(())
    }

    fn shrink(&self, account: &Account, to: usize) {
        let have = account.bytes();
        if to < have {
            account.set(to);
            self.give(account.kind, have - to);
        }
    }

    fn close(&self, account: &Account) {
        let bytes = account.bytes();
        account.set(0);
        self.lock().try_remove(account.key);
        self.give(account.kind, bytes);
    }

    fn give(&self, kind: Kind, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::AcqRel);
        self.kinds[kind as usize].fetch_sub(bytes, Ordering::Relaxed);
        let before = self.given_up.fetch_add(bytes, Ordering::Relaxed);
        if before < PURGE_BYTES && before.saturating_add(bytes) >= PURGE_BYTES {
            self.purge.notify_one();
        }
    }

    /// Says that a holder has lost, once in a while.
    fn say(&self, account: &Account, bytes: usize) {
        if let Some(more) = self.complaints.take("memory") {
            let (kind, limit) = (account.kind.as_str(), self.limit);
            tracing::warn!(
                kind,
                upstream = account.upstream(),
                client = account.client(),
                bytes,
                limit,
                more = left_unsaid(more),
                "memory_limit reached; the largest message of the client that holds most was dropped"
            );
        }
    }

    /// The use from which on holders lose.
    fn begins_at(&self) -> usize {
        self.limit - self.limit / 4
    }

    /// Has holders lose until `used` would do, the largest of the client that holds most first; says whether the one that wants `to` may
    /// have it.
    fn make_room(&self, asking: &Account, to: usize, used: usize) -> bool {
        let (mut woken, mut deferred) = (Vec::<Waker>::new(), Vec::<Waker>::new());
        let (all, mut leaving) = self.holders();
        let mut clients = Clients::weighed(&all, asking, to);
        let mut is_largest = false;
        while used.saturating_sub(leaving) > self.begins_at() {
            let Some(other) = clients.first() else { break };
            if !clients.goes_before_asking(other) {
                is_largest = true;
                break;
            }
            clients.pop();
            if other.lose() {
                leaving += other.bytes();
                self.lost[other.kind as usize].fetch_add(1, Ordering::Relaxed);
                self.say(other, other.bytes());
                let all = if other.is_deferred() { &mut deferred } else { &mut woken };
                all.extend(other.waker());
            }
        }
        woken.into_iter().for_each(Waker::wake);
        if !deferred.is_empty() {
            self.deferred.lock().unwrap_or_else(PoisonError::into_inner).append(&mut deferred);
            self.defers.notify_one();
        }
        let is_enough = used.saturating_sub(leaving) <= self.begins_at();
        !is_largest && used <= self.limit && (is_enough || !asking.kind.comes_in())
    }

    /// All holders, and how much of those that have lost is still there.
    fn holders(&self) -> (Vec<Arc<Account>>, usize) {
        let accounts = self.lock();
        let all: Vec<_> = accounts.iter().filter_map(|(_, account)| account.upgrade()).collect();
        drop(accounts);
        let leaving = all.iter().filter(|one| one.has_lost()).map(|one| one.bytes()).sum();
        (all, leaving)
    }

    fn lock(&self) -> MutexGuard<'_, Slab<Weak<Account>>> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
