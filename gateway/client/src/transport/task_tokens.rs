//! The tasks that a link's calls were given: their progress goes on under the number of the call, when that is answered.

use super::events::LinkEvents;
use super::exchange::mailbox::{Arrival, Mailbox};
use crate::call::Ledger;
use crate::call::share::Share;
use crate::protocol::frame::message::Body;
use crate::protocol::json;
use crate::protocol::value::{Key, Object};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// How many tasks are remembered; then the oldest of the client that has most is forgotten.
const TASKS_MAX: usize = 256;
/// Tasks with longer ids are not remembered.
const ID_BYTES_MAX: usize = 4096;

/// The tasks whose makers want progress.
#[derive(Debug)]
pub(super) struct TaskTokens(Mutex<Ledger<One>>);

impl Default for TaskTokens {
    fn default() -> Self {
        Self(Mutex::new(Ledger::new(TASKS_MAX)))
    }
}

#[derive(Debug)]
struct One {
    /// The number of the call, which is the progress token.
    token: u64,
    own: Arc<str>,
    /// Where the call's answer may still wait: what is told before that was read is told on the call.
    slot: Weak<Mailbox>,
    reached: Option<f64>,
}

impl TaskTokens {
    /// A call is answered: where it is given a task, and wants progress, that goes on.
    pub(super) fn answered(&self, token: u64, slot: &Arc<Mailbox>, body: &Body) {
        let Some(own) = slot.progress.then(|| task_in(body)).flatten() else { return };
        let one = One { token, own, slot: Arc::downgrade(slot), reached: slot.progressed() };
        self.lock().push(slot.share.as_ref().unwrap_or(&Share::Unknown), one);
    }

    /// Takes progress of a call that is no longer in flight; says whether that was given a task.
    pub(super) fn progressed(&self, inbox: &dyn LinkEvents, params: Object) -> bool {
        let number = |raw: &[u8]| std::str::from_utf8(raw).ok()?.parse::<u64>().ok();
        let reached = |raw: &[u8]| std::str::from_utf8(raw).ok()?.parse::<f64>().ok();
        let (Some(token), Some(value)) =
            (params.get(Key::ProgressToken).and_then(number), params.find("progress").and_then(reached))
        else {
            return false;
        };
        let mut made = self.lock();
        let Some(one) = made.iter_mut().find(|one| one.token == token) else { return false };
        if one.reached.is_some_and(|before| value <= before) {
            return true;
        }
        one.reached = Some(value);
        let (own, slot) = (one.own.clone(), one.slot.upgrade());
        drop(made);
        if !slot.is_some_and(|slot| slot.push_before_end(Arrival::Progress(params.clone()))) {
            inbox.task_progressed(&own, params);
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, Ledger<One>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The id of the task that an answer gives, in the handshake's form.
fn task_in(body: &Body) -> Option<Arc<str>> {
    let Body::Result(result) = body else { return None };
    if result.get(Key::Content).is_some_and(|content| content != b"[]") {
        return None;
    }
    let id = json::get(result.find("task")?, "taskId").and_then(json::unquote)?;
    (id.len() <= ID_BYTES_MAX).then(|| id.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::caller::Principal;
    use crate::protocol::frame::Method;
    use crate::transport::exchange::Request;

    #[test]
    fn one_clients_many_tasks_take_the_progress_of_nobody_elses() {
        let (tokens, nothing) = (TaskTokens::default(), Object::empty());
        let body = Body::Result(Object::parse(r#"{"task":{"taskId":"t"}}"#.into()).unwrap());
        let answered = |name: &str, token: u64| {
            let share = Some(Share::Principal(Principal::named(name)));
            let request = Request { share, progress: true, ..Request::new(&Method::ToolsCall, &nothing, None) };
            tokens.answered(token, &Arc::new(Mailbox::of(&request)), &body);
        };
        answered("bob", 1);
        (2..1000).for_each(|token| answered("ann", token));
        let known: Vec<_> = tokens.lock().iter().map(|one| one.token).collect();
        assert_eq!((known.len(), known[0], known[1]), (TASKS_MAX, 1, 1000 - TASKS_MAX as u64 + 1));
    }
}
