//! Whether an upstream is needed: by whom it is awakened, by what it is kept awake, and since when by nothing.

use super::task_form;
use crate::call::{Call, Ending, Guard, Outcome};
use crate::protocol::{Method, Object, Revision, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// So many tasks are remembered; where there are more, the last ones keep nothing awake.
const TASKS_MAX: usize = 1024;
/// While calls are in flight, so often in that time it is looked whether they still are.
const LOOKS: u32 = 8;
/// A task that does not say how long it is kept is waited for so long, and none longer than the second.
const TASK_KEPT: Duration = Duration::from_secs(60 * 60);
const TASK_KEPT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// What one upstream is needed for.
#[derive(Debug)]
pub(crate) struct Need {
    /// It rests when it was not needed for so long; `None`: never, and nothing is counted.
    idle_stop: Option<Duration>,
    /// Somebody waits for it.
    is_awaited: AtomicBool,
    awaited: Notify,
    /// Calls in flight, those too that wait for an answer of a person.
    calls: AtomicUsize,
    inner: Mutex<Inner>,
    /// Whether it was told to stop, until it is told to start.
    off: watch::Sender<bool>,
}

#[derive(Debug)]
struct Inner {
    /// Since when no call is in flight.
    idle_since: Instant,
    /// Tasks that may still run, each with the time when it is given up.
    tasks: HashMap<Box<[u8]>, Instant>,
}

/// A call in flight.
pub(crate) struct Held {
    need: Arc<Need>,
    /// Of a call about a task: which one.
    task: Option<Box<[u8]>>,
    revision: Revision,
    is_over: bool,
}

impl Need {
    pub(crate) fn new(idle_stop: Option<Duration>) -> Arc<Self> {
        Arc::new(Self {
            idle_stop,
            is_awaited: AtomicBool::new(false),
            awaited: Notify::new(),
            calls: AtomicUsize::new(0),
            inner: Mutex::new(Inner { idle_since: Instant::now(), tasks: HashMap::new() }),
            off: watch::Sender::new(false),
        })
    }

    /// Somebody waits for it.
    pub(crate) fn wake(&self) {
        self.is_awaited.store(true, Ordering::Release);
        self.awaited.notify_one();
    }

    /// Resolves when somebody waits for it.
    pub(crate) async fn awaited(&self) {
        while !self.is_awaited.swap(false, Ordering::AcqRel) {
            self.awaited.notified().await;
        }
    }

    /// A call comes: before it is looked at where it goes. `None` where nobody counts.
    pub(crate) fn hold(self: &Arc<Self>, call: &Call) -> Option<Held> {
        self.idle_stop?;
        self.calls.fetch_add(1, Ordering::Relaxed);
        // Either the call sees that the gate is closed, or whoever closes it sees the call.
        fence(Ordering::SeqCst);
        let is_over = matches!(call.method, Method::TasksResult | Method::TasksCancel);
        let is_about = is_over || call.method == Method::TasksGet;
        let task = is_about.then(|| call.params.find("taskId").map(Into::into)).flatten();
        Some(Held { need: self.clone(), task, revision: call.revision(), is_over })
    }

    /// Nobody waits for it any more: it is there.
    pub(crate) fn is_there(&self) {
        self.is_awaited.store(false, Ordering::Release);
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
        !inner.tasks.is_empty()
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
            tokio::time::sleep_until(until).await;
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

    /// A task was told of: it runs, or it no longer does.
    pub(crate) fn task(&self, task: &Object) {
        let Some(id) = task.find("taskId").filter(|_| self.idle_stop.is_some()) else { return };
        let status = task.find("status").and_then(json::unquote);
        let mut inner = self.lock();
        if matches!(status.as_deref(), Some("completed" | "failed" | "cancelled")) {
            inner.tasks.remove(id);
        } else if inner.tasks.len() < TASKS_MAX || inner.tasks.contains_key(id) {
            let said = task.find("ttl").or_else(|| task.find("ttlMs"));
            let said = said.and_then(|raw| std::str::from_utf8(raw).ok()?.parse().ok()).map(Duration::from_millis);
            let until = Instant::now() + said.unwrap_or(TASK_KEPT).min(TASK_KEPT_MAX);
            inner.tasks.insert(id.into(), until);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Guard for Held {
    fn done(&mut self, ending: &Ending<'_>) {
        let Outcome::Complete(result) = ending.outcome else { return };
        match &self.task {
            Some(task) if self.is_over => _ = self.need.lock().tasks.remove(task),
            Some(_) => self.need.task(result),
            None => {
                if let Some(Ok((task, _))) = task_form::made(result, self.revision) {
                    self.need.task(&task);
                }
            }
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // The time first: who sees no call sees since when.
        self.need.touch();
        self.need.calls.fetch_sub(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::rig::call;
    use super::*;

    const LIMIT: Duration = Duration::from_secs(600);
    const LEGACY: Revision = Revision::V2025_11_25;

    fn held(need: &Arc<Need>, method: Method, params: &str) -> Held {
        need.hold(&call(LEGACY, method, params)).unwrap()
    }

    fn ended(held: &mut Held, result: &str) {
        let outcome = Outcome::Complete(Object::parse(result.to_owned().into()).unwrap());
        held.done(&Ending { outcome: &outcome, owner: None, upstream_time: Duration::ZERO });
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_unused_when_the_last_call_ended_long_ago() {
        let need = Need::new(Some(LIMIT));
        let begun = Instant::now();
        let (one, two) = (held(&need, Method::ToolsCall, "{}"), held(&need, Method::ToolsCall, "{}"));
        let watched = need.clone();
        let mut unused = std::pin::pin!(async move { watched.unused().await });
        assert!(tokio::time::timeout(LIMIT * 3, &mut unused).await.is_err(), "a call is in flight");
        drop(one);
        assert!(need.is_held());
        tokio::time::advance(LIMIT).await;
        drop(two);
        let ended_at = Instant::now();
        unused.await;
        assert!(!need.is_held());
        let after = ended_at.elapsed();
        assert!(after >= LIMIT && after <= LIMIT + LIMIT / LOOKS, "{after:?} after {:?}", ended_at - begun);
        assert!(Need::new(None).hold(&call(LEGACY, Method::ToolsCall, "{}")).is_none(), "nothing is counted");
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_keeps_it_until_it_has_ended_or_is_given_up() {
        let need = Need::new(Some(LIMIT));
        let mut made = held(&need, Method::ToolsCall, "{}");
        ended(&mut made, r#"{"task":{"taskId":"t","status":"working","ttl":5000}}"#);
        drop(made);
        assert!(need.is_held());
        ended(&mut held(&need, Method::TasksGet, r#"{"taskId":"t"}"#), r#"{"taskId":"t","status":"input_required"}"#);
        assert!(need.is_held());
        ended(&mut held(&need, Method::TasksGet, r#"{"taskId":"t"}"#), r#"{"taskId":"t","status":"completed"}"#);
        assert!(!need.is_held());
        ended(&mut held(&need, Method::ToolsCall, "{}"), r#"{"task":{"taskId":"u","status":"working","ttl":5000}}"#);
        tokio::time::advance(Duration::from_secs(4)).await;
        assert!(need.is_held());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(!need.is_held());
        need.task(&Object::parse(r#"{"taskId":"v","status":"working"}"#.into()).unwrap());
        ended(&mut held(&need, Method::TasksResult, r#"{"taskId":"v"}"#), r#"{"content":[]}"#);
        assert!(!need.is_held());
    }

    #[tokio::test]
    async fn who_waits_wakes_it_once() {
        let need = Need::new(None);
        need.wake();
        need.awaited().await;
        let again = need.awaited();
        assert!(tokio::time::timeout(Duration::from_millis(10), again).await.is_err());
    }
}
