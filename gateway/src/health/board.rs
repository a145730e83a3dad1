//! The health board: what every upstream is doing, written by its supervisor, read by whoever shows it.

use super::orders::{NotOrdered, Order, Ordered, Orders};
use super::row::{Health, State};
use super::traffic::Traffic;
use crate::memory::budget::Budget;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

/// All upstreams' health, in configuration order. Cheap to clone.
#[derive(Debug, Clone)]
pub struct StatusBoard(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    entries: Mutex<Vec<Health>>,
    /// What each of them is ordered to do.
    orders: Mutex<Vec<Arc<Orders>>>,
    changes: watch::Sender<u64>,
    budget: Budget,
}

/// One upstream's place on the board.
#[derive(Debug, Clone)]
pub struct StatusHandle {
    board: StatusBoard,
    at: usize,
    /// Of an instance beside the primary one: its number.
    instance: Option<u64>,
    /// What all together may keep, as this upstream's.
    budget: Budget,
}

impl Default for StatusBoard {
    fn default() -> Self {
        Self::new(Budget::default())
    }
}

impl StatusBoard {
    /// A board of those who share this budget.
    pub fn new(budget: Budget) -> Self {
        let (entries, orders) = (Mutex::default(), Mutex::default());
        Self(Arc::new(Shared { entries, orders, changes: watch::Sender::new(0), budget }))
    }

    /// What all of them together may keep.
    pub fn budget(&self) -> &Budget {
        &self.0.budget
    }

    /// Adds an upstream to the board, in state starting.
    pub fn add(&self, name: &Arc<str>, transport: &'static str) -> StatusHandle {
        let mut entries = self.lock();
        entries.push(Health::starting(name, transport));
        self.orders().push(Arc::default());
        StatusHandle {
            board: self.clone(),
            at: entries.len() - 1,
            instance: None,
            budget: self.0.budget.of_upstream(name),
        }
    }

    /// What is known now.
    pub fn snapshot(&self) -> Vec<Health> {
        self.lock().clone()
    }

    /// Tells of changes: the number grows with each.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// Orders an upstream to do something; resolves once that was done, or fails when it never will be.
    pub fn order(&self, name: &str, order: Order) -> Result<oneshot::Receiver<()>, NotOrdered> {
        let at = self.lock().iter().position(|health| &*health.name == name).ok_or(NotOrdered::Unknown)?;
        let orders = self.orders()[at].clone();
        orders.give(order)
    }

    fn orders(&self) -> MutexGuard<'_, Vec<Arc<Orders>>> {
        self.0.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Health>> {
        self.0.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StatusHandle {
    /// Changes what is known; what is remembered of the past moves by itself.
    pub fn update(&self, change: impl FnOnce(&mut Health)) {
        let mut entries = self.board.lock();
        let Some(health) = self.of(&mut entries) else { return };
        let (before, known) = (health.state, health.cause.clone());
        change(health);
        health.remember(before, known.as_ref());
        drop(entries);
        self.board.0.changes.send_modify(|count| *count += 1);
    }

    /// What is known now.
    pub fn health(&self) -> Health {
        let mut entries = self.board.lock();
        let gone = || Health { state: State::Stopped, ..Health::starting(&"".into(), "") };
        self.of(&mut entries).cloned().unwrap_or_else(gone)
    }

    /// Tells of changes of any upstream: the number grows with each.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.board.changes()
    }

    /// When the next attempt is due.
    pub fn retry_at(&self) -> Option<Instant> {
        self.of(&mut self.board.lock()).and_then(|health| health.retry_at)
    }

    /// What it is ordered to do next. Dropping the future loses nothing.
    pub async fn ordered(&self) -> Ordered {
        // Nobody can order a single instance about.
        if self.instance.is_some() {
            return std::future::pending().await;
        }
        let orders = self.board.orders()[self.at].clone();
        orders.next().await
    }

    /// What all together may keep, as this upstream's.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// How much it has to do, for whoever counts it.
    pub fn traffic(&self) -> Arc<Traffic> {
        self.health().traffic
    }

    /// Takes a place for an instance beside this one, under it; `name` says whose it is.
    pub fn instance(&self, name: &Arc<str>, number: u64) -> Self {
        let mut entries = self.board.lock();
        let health = Health::starting(name, entries[self.at].transport);
        entries[self.at].instances.insert(number, health);
        Self { board: self.board.clone(), at: self.at, instance: Some(number), budget: self.budget.clone() }
    }

    /// Gives an instance's place up.
    pub fn leave(&self) {
        if let Some(number) = self.instance {
            self.board.lock()[self.at].instances.remove(&number);
            self.board.0.changes.send_modify(|count| *count += 1);
        }
    }

    fn of<'a>(&self, entries: &'a mut [Health]) -> Option<&'a mut Health> {
        let primary = &mut entries[self.at];
        match &self.instance {
            None => Some(primary),
            Some(number) => primary.instances.get_mut(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn an_instance_has_its_place_under_its_upstream_until_it_leaves() {
        let board = StatusBoard::default();
        let handle = board.add(&"a".into(), "stdio");
        let beside = handle.instance(&"laptop".into(), 7);
        beside.update(|health| health.pid = Some(1));
        let health = board.snapshot().remove(0);
        assert_eq!((health.pid, health.instances[&7].pid, &*health.instances[&7].name), (None, Some(1), "laptop"));
        beside.leave();
        beside.update(|health| health.pid = Some(2));
        assert!(board.snapshot()[0].instances.is_empty());
        assert_eq!((beside.health().state, handle.health().state), (State::Stopped, State::Starting));
    }

    #[tokio::test(start_paused = true)]
    async fn since_moves_with_the_state_and_changes_are_told() {
        let board = StatusBoard::default();
        let mut changes = board.changes();
        let handle = board.add(&"a".into(), "stdio");
        tokio::time::advance(Duration::from_secs(3)).await;
        handle.update(|health| health.restarts = 1);
        assert_eq!(handle.health().since.elapsed(), Duration::from_secs(3));
        handle.update(|health| health.state = State::Ready);
        assert_eq!(handle.health().since.elapsed(), Duration::ZERO);
        assert!(changes.has_changed().unwrap());
        assert_eq!(*changes.borrow_and_update(), 2);
    }
}
