//! One budget for all that peers make the gateway keep: counted in steps; once it is spent, the client that holds most loses.

use super::account::{Account, Hold, Kind, Owner, Whose};
use super::ledger::{Ledger, STEP};
use super::small::Cells;
pub use super::spent::Spent;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// A holder of no more than this is not counted by itself, but with all that is small and of the same client.
pub const UNCOUNTED: usize = 16 * 1024;
/// What all peers together may make the gateway keep. Cheap to clone; clones are the same budget.
#[derive(Debug, Clone)]
pub struct Budget(Arc<Ledger>, Whose, Arc<Standings>);

/// What stands, by what it is.
#[derive(Debug, Default)]
pub(super) struct Standings {
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
        Self(Arc::new(Ledger::new(limit)), Whose::default(), Arc::default())
    }

    /// The same budget; what is counted through it is weighed with all that this client holds.
    #[must_use]
    pub fn owned_by(&self, owner: Owner) -> Self {
        Self(self.0.clone(), Whose { owner: Some(owner), upstream: self.1.upstream.clone() }, self.2.clone())
    }

    /// The same budget; what is counted through it is kept on behalf of this upstream.
    #[must_use]
    pub fn of_upstream(&self, upstream: &Arc<str>) -> Self {
        Self(self.0.clone(), Whose { owner: self.1.owner.clone(), upstream: Some(upstream.clone()) }, self.2.clone())
    }

    /// The limit; `None` where there is none.
    pub fn limit(&self) -> Option<usize> {
        (self.0.limit() < usize::MAX).then_some(self.0.limit())
    }

    /// The longest message that can pass, while nothing else is kept: on its way out it is counted a second time.
    pub fn longest(&self) -> usize {
        self.0.limit() / 2
    }

    /// For whom stands what is counted through it.
    pub(super) fn stands_for(&self) -> StandsFor {
        StandsFor { client: self.1.owner.as_ref().map(Owner::key), upstream: self.1.upstream.clone() }
    }

    pub(super) fn standings(&self) -> &Standings {
        &self.2
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
    pub fn count(&self, kind: Kind, bytes: usize) -> Charge {
        let account = self.0.open(kind, &self.1);
        let bytes = bytes.div_ceil(STEP).saturating_mul(STEP);
        let used = self.0.used.fetch_add(bytes, Ordering::AcqRel).saturating_add(bytes);
        if used > self.0.begins_at() {
            self.0.make_room(&account, bytes, used);
        }
        self.0.kinds[kind as usize].fetch_add(bytes, Ordering::Relaxed);
        account.set(bytes);
        Charge(Some((self.0.clone(), Held::Counted(account))))
    }

    /// Resolves once [`Self::wake_deferred`] has something to do.
    pub(crate) async fn defers(&self) {
        self.0.defers.notified().await;
    }

    /// Wakes those that could not be where they lost.
    pub fn wake_deferred(&self) {
        let deferred = std::mem::take(&mut *self.0.deferred.lock().unwrap_or_else(PoisonError::into_inner));
        deferred.into_iter().for_each(Waker::wake);
    }

    /// Resolves once much was given up since it last did.
    pub(crate) async fn gave_up_much(&self) {
        self.0.purge.notified().await;
        self.0.given_up.store(0, Ordering::Relaxed);
    }
}

/// What one holder keeps, counted until this is dropped. An empty one costs nothing, one that is small an atomic add.
#[derive(Debug, Default)]
pub struct Charge(Option<(Arc<Ledger>, Held)>);

#[derive(Debug)]
enum Held {
    /// With all that is small and of the same client.
    Small { place: usize, bytes: usize },
    /// By itself.
    Counted(Arc<Account>),
}

impl Charge {
    /// Counts so many bytes in all from now on. On an error nothing more is counted, and the holder gives up what it has, or
    /// refuses what is new.
    pub fn grow(&mut self, budget: &Budget, kind: Kind, to: usize) -> Result<(), Spent> {
        let Some(account) = self.account() else {
            if to <= UNCOUNTED {
                return self.grow_small(budget, to);
            }
            let mut counted = Self(Some((budget.0.clone(), Held::Counted(budget.0.open(kind, &budget.1)))));
            counted.grow(budget, kind, to)?;
            *self = counted;
            return Ok(());
        };
        if account.has_lost() {
            return Err(Spent::LOST);
        }
        let (to, have) = (to.div_ceil(STEP).saturating_mul(STEP), account.bytes());
        if to <= have { Ok(()) } else { budget.0.grow(account, to) }
    }

    fn grow_small(&mut self, budget: &Budget, to: usize) -> Result<(), Spent> {
        match &mut self.0 {
            Some((ledger, Held::Small { place, bytes })) if to > *bytes => {
                ledger.add_small(*place, &budget.1, to - *bytes)?;
                *bytes = to;
            }
            none @ None if to > 0 => {
                let place = Cells::place(&budget.1);
                budget.0.add_small(place, &budget.1, to)?;
                *none = Some((budget.0.clone(), Held::Small { place, bytes: to }));
            }
            _ => {}
        }
        Ok(())
    }

    /// Counts so many bytes in all from now on, which are fewer.
    pub fn shrink(&mut self, to: usize) {
        match &mut self.0 {
            Some(_) if to == 0 => *self = Self::default(),
            Some((ledger, Held::Small { place, bytes })) if to < *bytes => {
                ledger.take_small(*place, *bytes - to);
                *bytes = to;
            }
            Some((ledger, Held::Counted(account))) if to <= UNCOUNTED => {
                let (ledger, place) = (ledger.clone(), Cells::place(account.whose()));
                ledger.note_small(place, to);
                *self = Self(Some((ledger, Held::Small { place, bytes: to })));
            }
            Some((ledger, Held::Counted(account))) => ledger.shrink(account, to.div_ceil(STEP).saturating_mul(STEP)),
            _ => {}
        }
    }

    /// Its account, where it is counted by itself.
    fn account(&self) -> Option<&Arc<Account>> {
        match &self.0 {
            Some((_, Held::Counted(account))) => Some(account),
            _ => None,
        }
    }

    /// Ready once it is to be given up. From the first call on, until [`Self::keep`], it can be.
    pub fn poll_lost(&self, cx: &Context<'_>) -> Poll<()> {
        self.account().map_or(Poll::Pending, |account| account.poll_lost(cx))
    }

    /// As [`Self::poll_lost`], where nobody polls: `give_up` is woken, by a task that holds no lock, and takes what it needs.
    pub fn give_up_by(&self, give_up: &Waker) -> Poll<()> {
        self.account().into_iter().for_each(|account| account.defer());
        self.poll_lost(&Context::from_waker(give_up))
    }

    /// It is handed on, and cannot be taken away meanwhile.
    pub fn keep(&self) {
        self.account().into_iter().for_each(|account| account.keep());
    }

    /// For whoever waits while somebody else has what is kept; `None` where it is not counted by itself.
    pub fn hold(&self) -> Option<Hold> {
        self.account().map(Hold::of)
    }

    /// Whether nothing is counted by itself.
    pub fn is_empty(&self) -> bool {
        self.account().is_none()
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        match &self.0 {
            Some((ledger, Held::Counted(account))) => ledger.close(account),
            Some((ledger, Held::Small { place, bytes })) => ledger.take_small(*place, *bytes),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests;
