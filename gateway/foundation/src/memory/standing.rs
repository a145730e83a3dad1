//! What stays as long as a session, a subscription or an upstream's offer does: never taken away, so of bounded size. Counted exactly.

use super::account::Kind;
use super::budget::{Budget, Spent, Standing, StandsFor};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// So much of the budget all of a kind may take: it is not given up for others.
const PART: usize = 4;

impl Budget {
    /// Counts what stays as long as a session or a subscription does, exactly, however small it is. All of it has a part of the budget,
    /// of which one client has at most as much as is still free.
    pub fn stand(&self, bytes: usize) -> Result<StandingCharge, Spent> {
        StandingCharge::take(self, Kind::Session, bytes)
    }

    /// As [`Self::stand`], for what stays as long as an upstream offers it: it has a part of its own, of which one upstream has at most
    /// as much as is still free.
    pub fn stand_listed(&self, bytes: usize) -> Result<StandingCharge, Spent> {
        StandingCharge::take(self, Kind::List, bytes)
    }
}

/// A part of what stands, counted until this is dropped.
#[derive(Debug)]
pub struct StandingCharge {
    budget: Budget,
    kind: Kind,
    stands_for: StandsFor,
    bytes: usize,
}

impl StandingCharge {
    /// Counts so many bytes for whom the budget names.
    fn take(budget: &Budget, kind: Kind, bytes: usize) -> Result<Self, Spent> {
        let mut charge = Self { budget: budget.clone(), kind, stands_for: budget.stands_for(), bytes: 0 };
        charge.grow(bytes)?;
        Ok(charge)
    }

    /// Counts so many bytes more; they are at most as much as is free afterwards. On an error nothing more is counted.
    pub fn grow(&mut self, more: usize) -> Result<(), Spent> {
        let mut standing = lock(&self.budget, self.kind);
        let (part, held) = (self.budget.limit().unwrap_or(usize::MAX) / PART, standing.all);
        let free = part.saturating_sub(held);
        let own = standing.by.entry(self.stands_for.clone()).or_default();
        let fits = own.bytes.saturating_add(more) <= free;
        let counted = match fits {
            true => own.charge.grow(&self.budget, self.kind, own.bytes + more),
            false => Err(Spent::of(part, held, own.bytes.saturating_add(more))),
        };
        if let Err(spent) = counted {
            standing.by.retain(|_, own| own.bytes > 0);
            return Err(spent);
        }
        own.bytes += more;
        standing.all += more;
        self.bytes += more;
        Ok(())
    }
}

impl Drop for StandingCharge {
    fn drop(&mut self) {
        let mut standing = lock(&self.budget, self.kind);
        standing.all -= self.bytes;
        let Some(own) = standing.by.get_mut(&self.stands_for) else { return };
        own.bytes -= self.bytes;
        let left = own.bytes;
        own.charge.shrink(left);
        if left == 0 {
            standing.by.remove(&self.stands_for);
        }
    }
}

fn lock(budget: &Budget, kind: Kind) -> MutexGuard<'_, Standing> {
    let standings = budget.standings();
    let standing: &Mutex<Standing> = if kind == Kind::List { &standings.lists } else { &standings.sessions };
    standing.lock().unwrap_or_else(PoisonError::into_inner)
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
        let sessions = lock(&budget, Kind::Session);
        assert!(sessions.all == 0 && sessions.by.is_empty());
    }

    #[test]
    fn lists_of_one_upstream_leave_room_for_others_and_for_sessions() {
        let budget = Budget::new(64 << 20);
        let all = |name: &str| {
            let budget = budget.of_upstream(&name.into());
            let mut charge = budget.stand_listed(0).unwrap();
            let counted = std::iter::from_fn(|| charge.grow(1024).ok()).count();
            (charge, counted)
        };
        let (one, other) = (all("one"), all("other"));
        assert_eq!((one.1, other.1), (8 * 1024, 4 * 1024), "a half, and a half of what is left");
        assert_eq!((budget.used(), budget.used_by(Kind::List)), (12 << 20, 12 << 20));
        assert!(budget.stand(8 << 20).is_ok(), "sessions have a part of their own");
        drop((one, other));
        assert_eq!(budget.used(), 0);
        let lists = lock(&budget, Kind::List);
        assert!(lists.all == 0 && lists.by.is_empty());
    }
}
