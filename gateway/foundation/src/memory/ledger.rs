//! Who holds what, and who loses once the budget is spent: the client that holds most, of it what waits for a slow peer.

use super::account::{Account, Kind, Whose};
use super::clients::Clients;
use super::small::Cells;
use super::spent::Spent;
use crate::runtime::complaints::{Complaints, left_unsaid};
use slab::Slab;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;
use std::time::Duration;
use tokio::sync::Notify;

/// Holders are counted in steps of this.
pub(super) const STEP: usize = 16 * 1024;
/// Once so much was given up, the allocator is reminded to give memory back.
const PURGE_BYTES: usize = 1024 * 1024;
/// How often it is said that a holder has lost.
const SAY_EVERY: Duration = Duration::from_secs(60);
/// So much of the budget all that is small may take.
const SMALL_PART: usize = 4;

/// All holders.
#[derive(Debug)]
pub(crate) struct Ledger {
    limit: usize,
    pub(super) used: AtomicUsize,
    pub(super) kinds: [AtomicUsize; Kind::ALL.len()],
    pub(super) lost: [AtomicU64; Kind::ALL.len()],
    /// Those that are counted; each has a step at least, so the limit bounds them.
    accounts: Mutex<Slab<Weak<Account>>>,
    /// How much was given up since the allocator was last reminded.
    pub(super) given_up: AtomicUsize,
    pub(super) purge: Notify,
    complaints: Complaints,
    /// Those that a task is to wake.
    pub(super) deferred: Mutex<Vec<Waker>>,
    pub(super) defers: Notify,
    /// What is small, by client.
    small: Cells,
}

impl Ledger {
    pub(super) fn new(limit: usize) -> Self {
        Self {
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
            small: Cells::default(),
        }
    }

    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    pub(super) fn open(&self, kind: Kind, whose: &Whose) -> Arc<Account> {
        let mut accounts = self.lock();
        let entry = accounts.vacant_entry();
        let account = Arc::new(Account::new(kind, entry.key(), whose.clone()));
        entry.insert(Arc::downgrade(&account));
        account
    }

    pub(super) fn grow(&self, account: &Account, to: usize) -> Result<(), Spent> {
        let more = to - account.bytes();
        let used = self.used.fetch_add(more, Ordering::AcqRel).saturating_add(more);
        if used > self.begins_at() && !self.make_room(account, to, used) {
            self.say(account, to);
            self.used.fetch_sub(more, Ordering::AcqRel);
            self.lost[account.kind as usize].fetch_add(1, Ordering::Relaxed);
            return Err(Spent::of(self.limit, used.saturating_sub(more), to));
        }
        self.kinds[account.kind as usize].fetch_add(more, Ordering::Relaxed);
        account.set(to);
        Ok(())
    }

    pub(super) fn shrink(&self, account: &Account, to: usize) {
        let have = account.bytes();
        if to < have {
            account.set(to);
            self.give(account.kind, have - to);
        }
    }

    pub(super) fn close(&self, account: &Account) {
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
    pub(super) fn begins_at(&self) -> usize {
        self.limit - self.limit / 4
    }

    /// Has holders lose until `used` would do, the largest of the client that holds most first; says whether the one that wants `to` may
    /// have it.
    pub(super) fn make_room(&self, asking: &Account, to: usize, used: usize) -> bool {
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

    /// Whether nobody is counted by himself.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
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

    /// Counts so many bytes more among what is small. All of it has a part of the budget, of which one client has at most as much as is
    /// still free: it is not given up for others.
    pub(super) fn add_small(&self, place: usize, whose: &Whose, bytes: usize) -> Result<(), Spent> {
        self.small.at(place).add(bytes, |kept, to| {
            let had = kept.as_ref().map_or(0, |account| account.bytes());
            let all = self.kinds[Kind::Small as usize].load(Ordering::Relaxed).saturating_add(to - had);
            if to > (self.limit / SMALL_PART).saturating_sub(all) {
                self.lost[Kind::Small as usize].fetch_add(1, Ordering::Relaxed);
                return Err(Spent::of(self.limit / SMALL_PART, all - (to - had), to));
            }
            let account = kept.get_or_insert_with(|| self.open(Kind::Small, whose));
            let grown = self.grow(account, to);
            if grown.is_err() && had == 0 {
                kept.take().iter().for_each(|account| self.close(account));
            }
            grown
        })
    }

    /// What is not large any more counts among what is small.
    pub(super) fn note_small(&self, place: usize, bytes: usize) {
        self.small.at(place).note(bytes);
    }

    /// So much of what is small is gone.
    pub(super) fn take_small(&self, place: usize, bytes: usize) {
        self.small.at(place).take(bytes, |kept, to| match to {
            0 => kept.take().iter().for_each(|account| self.close(account)),
            to => kept.iter().for_each(|account| self.shrink(account, to)),
        });
    }
}
