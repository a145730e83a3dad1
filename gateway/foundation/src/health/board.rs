//! The health board: what every upstream is doing, written by its supervisor, read by whoever shows it.

use super::orders::{NotOrdered, Order, Ordered, Orders};
use super::row::{Health, State};
use super::traffic::Traffic;
use crate::memory::budget::Budget;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

/// All upstreams' health, in configuration order. Cheap to clone.
#[derive(Debug, Clone)]
pub struct StatusBoard(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    rows: Mutex<Vec<Row>>,
    changes: watch::Sender<u64>,
    budget: Budget,
}

/// What the board has of one upstream.
#[derive(Debug)]
struct Row {
    health: Health,
    /// What it is ordered to do.
    orders: Arc<Orders>,
}

/// One upstream's place on the board, wherever its row stands: those before it may come and go.
#[derive(Debug, Clone)]
pub struct StatusHandle {
    board: StatusBoard,
    /// What it is ordered to do; its row is the one that has the same.
    orders: Arc<Orders>,
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
        Self(Arc::new(Shared { rows: Mutex::default(), changes: watch::Sender::new(0), budget }))
    }

    /// What all of them together may keep.
    pub fn budget(&self) -> &Budget {
        &self.0.budget
    }

    /// Adds an upstream to the board, in state starting.
    pub fn add(&self, name: &Arc<str>, transport: &'static str) -> StatusHandle {
        let orders = Arc::<Orders>::default();
        self.lock().push(Row { health: Health::starting(name, transport), orders: orders.clone() });
        let budget = self.0.budget.of_upstream(name);
        StatusHandle { board: self.clone(), orders, instance: None, budget }
    }

    /// Shows the upstreams in the order of these; others behind them.
    pub fn arrange<'a>(&self, handles: impl IntoIterator<Item = &'a StatusHandle>) {
        let places: HashMap<_, _> = handles.into_iter().map(|one| Arc::as_ptr(&one.orders)).zip(0..).collect();
        self.lock().sort_by_key(|row| places.get(&Arc::as_ptr(&row.orders)).copied().unwrap_or(usize::MAX));
        self.0.changes.send_modify(|count| *count += 1);
    }

    /// What is known now.
    pub fn snapshot(&self) -> Vec<Health> {
        self.lock().iter().map(|row| row.health.clone()).collect()
    }

    /// Tells of changes: the number grows with each.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// Orders an upstream to do something; resolves once that was done, or fails when it never will be.
    pub fn order(&self, name: &str, order: Order) -> Result<oneshot::Receiver<()>, NotOrdered> {
        let orders = self.lock().iter().find(|row| &*row.health.name == name).map(|row| row.orders.clone());
        orders.ok_or(NotOrdered::Unknown)?.give(order)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Row>> {
        self.0.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StatusHandle {
    /// Changes what is known; what is remembered of the past moves by itself.
    pub fn update(&self, change: impl FnOnce(&mut Health)) {
        let mut rows = self.board.lock();
        let Some(health) = self.of(&mut rows) else { return };
        let (before, known) = (health.state, health.cause.clone());
        change(health);
        health.remember(before, known.as_ref());
        drop(rows);
        self.board.0.changes.send_modify(|count| *count += 1);
    }

    /// What is known now.
    pub fn health(&self) -> Health {
        let mut rows = self.board.lock();
        let gone = || Health { state: State::Stopped, ..Health::starting(&"".into(), "") };
        self.of(&mut rows).cloned().unwrap_or_else(gone)
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
        self.orders.next().await
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
        if let Some(primary) = self.primary(&mut self.board.lock()) {
            let health = Health::starting(name, primary.transport);
            primary.instances.insert(number, health);
        }
        Self { instance: Some(number), ..self.clone() }
    }

    /// One without a place: nothing that is said of it is shown.
    pub fn unshown(&self) -> Self {
        Self { instance: Some(u64::MAX), ..self.clone() }
    }

    /// Gives the upstream's own place up: from now on nothing that it does is shown.
    pub fn remove(&self) {
        self.board.lock().retain(|row| !Arc::ptr_eq(&row.orders, &self.orders));
        self.board.0.changes.send_modify(|count| *count += 1);
    }

    /// Gives an instance's place up.
    pub fn leave(&self) {
        if let Some(number) = self.instance {
            self.primary(&mut self.board.lock()).and_then(|primary| primary.instances.remove(&number));
            self.board.0.changes.send_modify(|count| *count += 1);
        }
    }

    fn primary<'a>(&self, rows: &'a mut [Row]) -> Option<&'a mut Health> {
        rows.iter_mut().find(|row| Arc::ptr_eq(&row.orders, &self.orders)).map(|row| &mut row.health)
    }

    fn of<'a>(&self, rows: &'a mut [Row]) -> Option<&'a mut Health> {
        let primary = self.primary(rows)?;
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

    #[tokio::test]
    async fn a_handle_is_its_upstreams_own_also_when_one_before_it_has_gone() {
        let board = StatusBoard::default();
        let (first, second) = (board.add(&"a".into(), "stdio"), board.add(&"b".into(), "http"));
        first.remove();
        second.update(|health| health.restarts = 2);
        first.update(|health| health.restarts = 1);
        let shown: Vec<_> = board.snapshot().iter().map(|health| (health.name.to_string(), health.restarts)).collect();
        assert_eq!(shown, [("b".to_owned(), 2)]);
        assert_eq!((first.health().state, second.health().restarts), (State::Stopped, 2));
        let done = board.order("b", Order::Stop).unwrap();
        assert_eq!(second.ordered().await.order, Order::Stop);
        drop(done);
        assert!(board.order("a", Order::Stop).is_err());
        let third = board.add(&"c".into(), "http");
        board.arrange([&third, &second]);
        assert_eq!(board.snapshot().iter().map(|health| &*health.name).collect::<Vec<_>>(), ["c", "b"]);
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
