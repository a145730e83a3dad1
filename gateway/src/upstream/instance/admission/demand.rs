//! Whether an upstream is needed: by whom it is awakened, by what it is kept awake, and since when by nothing.

use crate::call::Call;
use crate::call::reply::{Ending, Guard, Outcome};
use crate::protocol::frame::Method;
use crate::protocol::payload::task;
use crate::protocol::revision::Revision;
use crate::protocol::value::{Object, TaskStatus};
use crate::runtime::timer::late::passed;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// So many tasks are remembered; where there are more, the last ones keep nothing awake.
const TASKS_MAX: usize = 1024;
/// Tasks with longer ids are not told apart.
const ID_BYTES_MAX: usize = 1024;
/// While calls are in flight, so often in that time it is looked whether they still are.
const LOOKS: u32 = 8;
/// A task that does not say how long it is kept is waited for so long, and none longer than the second.
const TASK_KEPT: Duration = Duration::from_secs(60 * 60);
const TASK_KEPT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// What one upstream is needed for.
#[derive(Debug)]
pub(crate) struct Demand {
    /// It rests when it was not needed for so long; `None`: never, and nothing is counted.
    idle_stop: Option<Duration>,
    /// Somebody waits for it.
    is_awaited: AtomicBool,
    awaited: Notify,
    /// A call waits for it.
    is_urgent: AtomicBool,
    urgent: Notify,
    /// Calls in flight, those too that wait for an answer of a person.
    calls: AtomicUsize,
    inner: Mutex<Inner>,
    /// Whether it was told to stop, until it is told to start.
    off: watch::Sender<bool>,
    /// How often an order has ended what was open.
    orders: watch::Sender<u64>,
    /// Whether the last one leaves running calls no time.
    is_at_once: AtomicBool,
}

#[derive(Debug)]
struct Inner {
    /// Since when no call is in flight.
    idle_since: Instant,
    /// Tasks that may still run, each with the time when it is given up.
    tasks: HashMap<Box<[u8]>, Instant>,
    /// When the last of those is given up for which there was no room: whose they are, nobody's task is stopped for want of room.
    beyond: Option<Instant>,
}

/// A call in flight.
pub(crate) struct DemandGuard {
    demand: Arc<Demand>,
    /// Of a call about a task: which one.
    task: Option<Box<[u8]>>,
    revision: Revision,
    is_over: bool,
}

impl Demand {
    pub(crate) fn new(idle_stop: Option<Duration>) -> Arc<Self> {
        Arc::new(Self {
            idle_stop,
            is_awaited: AtomicBool::new(false),
            awaited: Notify::new(),
            is_urgent: AtomicBool::new(false),
            urgent: Notify::new(),
            calls: AtomicUsize::new(0),
            inner: Mutex::new(Inner { idle_since: Instant::now(), tasks: HashMap::new(), beyond: None }),
            off: watch::Sender::new(false),
            orders: watch::Sender::new(0),
            is_at_once: AtomicBool::new(false),
        })
    }

    /// Somebody waits for it.
    pub(crate) fn wake(&self) {
        self.is_awaited.store(true, Ordering::Release);
        self.awaited.notify_one();
    }

    /// A call waits for it: where starts come by turns, its own comes before those that nobody waits for.
    pub(crate) fn hurry(&self) {
        self.wake();
        if !self.is_urgent.swap(true, Ordering::AcqRel) {
            self.urgent.notify_one();
        }
    }

    /// Resolves when a call waits for it.
    pub(crate) async fn is_urgent(&self) {
        while !self.is_urgent.load(Ordering::Acquire) {
            self.urgent.notified().await;
        }
    }

    /// Resolves when somebody waits for it.
    pub(crate) async fn awaited(&self) {
        while !self.is_awaited.swap(false, Ordering::AcqRel) {
            self.awaited.notified().await;
        }
    }

    /// A call comes: before it is looked at where it goes. `None` where nobody counts.
    pub(crate) fn hold(self: &Arc<Self>, call: &Call) -> Option<DemandGuard> {
        self.idle_stop?;
        self.calls.fetch_add(1, Ordering::Relaxed);
        // Either the call sees that the gate is closed, or whoever closes it sees the call.
        fence(Ordering::SeqCst);
        let is_over = matches!(call.method, Method::TasksResult | Method::TasksCancel);
        let is_about = is_over || call.method == Method::TasksGet;
        let task = is_about.then(|| call.params.find("taskId").map(Into::into)).flatten();
        Some(DemandGuard { demand: self.clone(), task, revision: call.revision(), is_over })
    }

    /// Nobody waits for it any more: it is there.
    pub(crate) fn is_there(&self) {
        self.is_awaited.store(false, Ordering::Release);
        self.is_urgent.store(false, Ordering::Release);
    }

    /// Whether anybody waits for it since it was there, or calls or tasks are in flight. Told of every call that found the gate
    /// open once that is closed.
    pub(crate) fn is_held(&self) -> bool {
        fence(Ordering::SeqCst);
        self.calls.load(Ordering::Relaxed) > 0 || self.has_tasks() || self.is_awaited.load(Ordering::Acquire)
    }

    fn has_tasks(&self) -> bool {
        let (mut inner, now) = (self.lock(), Instant::now());
        inner.tasks.retain(|_, until| *until > now);
        inner.beyond = inner.beyond.filter(|until| *until > now);
        !inner.tasks.is_empty() || inner.beyond.is_some()
    }

    /// It was needed until now.
    pub(crate) fn touch(&self) {
        self.lock().idle_since = Instant::now();
    }

    /// Resolves when no call was in flight for so long that it may rest; never where it does not.
    pub(crate) async fn unused(&self) {
        let Some(limit) = self.idle_stop else { return std::future::pending().await };
        loop {
            // A call wakes nobody: while one is in flight it is looked at again now and then.
            let until = match self.calls.load(Ordering::Acquire) {
                0 => self.lock().idle_since + limit,
                _ => Instant::now() + limit / LOOKS,
            };
            if until <= Instant::now() {
                return;
            }
            passed(until).await;
        }
    }

    /// It is to stay where it is until it is told to start; or no longer.
    pub(crate) fn turn_off(&self, is_off: bool) {
        self.off.send_replace(is_off);
    }

    /// Whether it was told to stop.
    pub(crate) fn is_off(&self) -> bool {
        *self.off.borrow()
    }

    /// Resolves when it is told to stop.
    pub(crate) async fn turned_off(&self) {
        let mut off = self.off.subscribe();
        // The sender lies here.
        let _ = off.wait_for(|is_off| *is_off).await;
    }

    /// An order ends what is open, at once or after a while.
    pub(crate) fn order(&self, at_once: bool) {
        self.is_at_once.store(at_once, Ordering::Release);
        self.orders.send_modify(|count| *count += 1);
    }

    /// How many such orders there were.
    pub(crate) fn orders(&self) -> u64 {
        *self.orders.borrow()
    }

    /// Resolves with the next such order; whether it is at once.
    pub(crate) async fn ordered(&self) -> bool {
        // The sender lies here.
        let _ = self.orders.subscribe().changed().await;
        self.is_at_once.load(Ordering::Acquire)
    }

    /// A task was told of: it runs, or it no longer does.
    pub(crate) fn task(&self, task: &Object) {
        let Some(id) = task.find("taskId").filter(|_| self.idle_stop.is_some()) else { return };
        let mut inner = self.lock();
        if TaskStatus::of(task).is_some_and(TaskStatus::is_final) {
            inner.tasks.remove(id);
        } else {
            let said = task.find("ttl").or_else(|| task.find("ttlMs"));
            let said = said.and_then(|raw| std::str::from_utf8(raw).ok()?.parse().ok()).map(Duration::from_millis);
            let until = Instant::now() + said.unwrap_or(TASK_KEPT).min(TASK_KEPT_MAX);
            let has_room = id.len() <= ID_BYTES_MAX && inner.tasks.len() < TASKS_MAX;
            if has_room || inner.tasks.contains_key(id) {
                inner.tasks.insert(id.into(), until);
            } else {
                inner.beyond = inner.beyond.max(Some(until));
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Guard for DemandGuard {
    fn done(&mut self, ending: &Ending<'_>) {
        let Outcome::Complete(result) = ending.outcome else { return };
        match &self.task {
            Some(task) if self.is_over => _ = self.demand.lock().tasks.remove(task),
            Some(_) => self.demand.task(result),
            None => {
                if let Some(Ok((task, _))) = task::made(result, self.revision) {
                    self.demand.task(&task);
                }
            }
        }
    }
}

impl Drop for DemandGuard {
    fn drop(&mut self) {
        // The time first: who sees no call sees since when.
        self.demand.touch();
        self.demand.calls.fetch_sub(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::tests::rig::call;

    const LIMIT: Duration = Duration::from_secs(600);
    const LEGACY: Revision = Revision::V2025_11_25;

    fn held(demand: &Arc<Demand>, method: Method, params: &str) -> DemandGuard {
        demand.hold(&call(LEGACY, method, params)).unwrap()
    }

    fn ended(held: &mut DemandGuard, result: &str) {
        let outcome = Outcome::Complete(Object::parse(result.to_owned().into()).unwrap());
        held.done(&Ending {
            outcome: &outcome,
            owner: None,
            upstream_time: Duration::ZERO,
            queue_time: Duration::ZERO,
        });
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_unused_when_the_last_call_ended_long_ago() {
        let demand = Demand::new(Some(LIMIT));
        let begun = Instant::now();
        let (one, two) = (held(&demand, Method::ToolsCall, "{}"), held(&demand, Method::ToolsCall, "{}"));
        let watched = demand.clone();
        let mut unused = std::pin::pin!(async move { watched.unused().await });
        assert!(tokio::time::timeout(LIMIT * 3, &mut unused).await.is_err(), "a call is in flight");
        drop(one);
        assert!(demand.is_held());
        tokio::time::advance(LIMIT).await;
        drop(two);
        let ended_at = Instant::now();
        unused.await;
        assert!(!demand.is_held());
        let after = ended_at.elapsed();
        assert!(after >= LIMIT && after <= LIMIT + LIMIT / LOOKS, "{after:?} after {:?}", ended_at - begun);
        assert!(Demand::new(None).hold(&call(LEGACY, Method::ToolsCall, "{}")).is_none(), "nothing is counted");
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_keeps_it_until_it_has_ended_or_is_given_up() {
        let demand = Demand::new(Some(LIMIT));
        let mut made = held(&demand, Method::ToolsCall, "{}");
        ended(&mut made, r#"{"task":{"taskId":"t","status":"working","ttl":5000}}"#);
        drop(made);
        assert!(demand.is_held());
        ended(&mut held(&demand, Method::TasksGet, r#"{"taskId":"t"}"#), r#"{"taskId":"t","status":"input_required"}"#);
        assert!(demand.is_held());
        ended(&mut held(&demand, Method::TasksGet, r#"{"taskId":"t"}"#), r#"{"taskId":"t","status":"completed"}"#);
        assert!(!demand.is_held());
        ended(&mut held(&demand, Method::ToolsCall, "{}"), r#"{"task":{"taskId":"u","status":"working","ttl":5000}}"#);
        tokio::time::advance(Duration::from_secs(4)).await;
        assert!(demand.is_held());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(!demand.is_held());
        demand.task(&Object::parse(r#"{"taskId":"v","status":"working"}"#.into()).unwrap());
        ended(&mut held(&demand, Method::TasksResult, r#"{"taskId":"v"}"#), r#"{"content":[]}"#);
        assert!(!demand.is_held());
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_kept_by_tasks_for_which_there_is_no_room_too() {
        let demand = Demand::new(Some(LIMIT));
        let told = |id: usize, status: &str| {
            demand
                .task(&Object::parse(format!(r#"{{"taskId":"{id}","status":"{status}","ttl":5000}}"#).into()).unwrap());
        };
        (0..=TASKS_MAX).for_each(|id| told(id, "working"));
        (0..TASKS_MAX).for_each(|id| told(id, "completed"));
        assert!(demand.is_held(), "one still runs");
        tokio::time::advance(Duration::from_secs(5)).await;
        assert!(!demand.is_held());
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_kept_by_tasks_with_ids_that_are_too_long_to_be_remembered() {
        let demand = Demand::new(Some(LIMIT));
        let task = format!(r#"{{"taskId":"{}","status":"working","ttl":5000}}"#, "x".repeat(ID_BYTES_MAX));
        demand.task(&Object::parse(task.into()).unwrap());
        assert!(demand.lock().tasks.is_empty() && demand.is_held());
        tokio::time::advance(Duration::from_secs(5)).await;
        assert!(!demand.is_held());
    }

    #[tokio::test]
    async fn who_waits_wakes_it_once() {
        let demand = Demand::new(None);
        demand.wake();
        demand.awaited().await;
        let again = demand.awaited();
        assert!(tokio::time::timeout(Duration::from_millis(10), again).await.is_err());
    }
}
