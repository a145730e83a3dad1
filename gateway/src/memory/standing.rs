//! What stays as long as a session or a subscription does: small each, many together, and never taken away. Counted exactly, by client.

use super::account::Kind;
use super::budget::{Budget, Spent, Standing};
use std::sync::{MutexGuard, PoisonError};

/// So much of the budget all of it may take: it is not given up for others.
const PART: usize = 4;

impl Budget {
    /// Counts what stays as long as a session or a subscription does, exactly, however small it is. All of it has a part of the budget,
    /// of which one client has at most as much as is still free.
    pub fn stand(&self, bytes: usize) -> Result<StandingCharge, Spent> {
        StandingCharge::take(self, self.owner(), bytes)
    }
}

/// A part of what stands, counted until this is dropped.
#[derive(Debug)]
pub struct StandingCharge {
    budget: Budget,
    owner: Option<u64>,
    bytes: usize,
}

impl StandingCharge {
    /// Counts so many bytes for a client, which has at most as much as is free afterwards.
    fn take(budget: &Budget, owner: Option<u64>, bytes: usize) -> Result<Self, Spent> {
        let mut standing = lock(budget);
        let free = (budget.ledger().limit() / PART).saturating_sub(standing.all);
        let own = standing.by.entry(owner).or_default();
        let fits = own.bytes.saturating_add(bytes) <= free;
        let counted = if fits { own.charge.grow(budget, Kind::Session, own.bytes + bytes) } else { Err(Spent) };
        if let Err(spent) = counted {
            standing.by.retain(|_, own| own.bytes > 0);
            return Err(spent);
        }
        own.bytes += bytes;
        standing.all += bytes;
        Ok(Self { budget: budget.clone(), owner, bytes })
    }
}

impl Drop for StandingCharge {
    fn drop(&mut self) {
        let mut standing = lock(&self.budget);
        standing.all -= self.bytes;
        let Some(own) = standing.by.get_mut(&self.owner) else { return };
        own.bytes -= self.bytes;
        let left = own.bytes;
        own.charge.shrink(left);
        if left == 0 {
            standing.by.remove(&self.owner);
        }
    }
}

fn lock(budget: &Budget) -> MutexGuard<'_, Standing> {
    budget.ledger().standing.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::account::{Owner, OwnerName};

    #[test]
    fn small_things_of_one_client_are_counted_together_and_leave_room_for_others() {
        let budget = Budget::new(64 << 20);
        let client = |name: &str| budget.owned_by(Owner::of(&name, OwnerName::Unknown));
        let all = |name: &str| {
            let budget = client(name);
            std::iter::from_fn(|| budget.stand(1024).ok()).collect::<Vec<_>>()
        };
        let (one, other) = (all("one"), all("other"));
        assert_eq!((one.len(), other.len()), (8 * 1024, 4 * 1024), "a half, and a half of what is left");
        assert_eq!((budget.used(), budget.used_by(Kind::Session)), (12 << 20, 12 << 20));
        drop((one, other));
        assert_eq!(budget.used(), 0);
        assert!(lock(&budget).all == 0 && lock(&budget).by.is_empty());
    }
}
