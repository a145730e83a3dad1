//! The tasks that a link's calls were given: their progress goes on under the number of the call, when that is answered.

use super::inbox::Inbox;
use super::slot::{Arrival, Slot};
use crate::protocol::frame::Body;
use crate::protocol::object::Key;
use crate::protocol::{Object, json};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// How many tasks are remembered; the oldest is forgotten.
const TASKS_MAX: usize = 256;
/// Tasks with longer ids are not remembered.
const ID_BYTES_MAX: usize = 4096;

/// The tasks whose makers want progress.
#[derive(Debug, Default)]
pub(super) struct Made(Mutex<VecDeque<One>>);

#[derive(Debug)]
struct One {
    /// The number of the call, which is the progress token.
    token: u64,
    own: Arc<str>,
    /// Where the call's answer may still wait: what is told before that was read is told on the call.
    slot: Weak<Slot>,
    reached: Option<f64>,
}

impl Made {
    /// A call is answered: where it is given a task, and wants progress, that goes on.
    pub(super) fn answered(&self, token: u64, slot: &Arc<Slot>, body: &Body) {
        let Some(own) = slot.progress.then(|| task_in(body)).flatten() else { return };
        let mut made = self.lock();
        if made.len() >= TASKS_MAX {
            made.pop_front();
        }
        made.push_back(One { token, own, slot: Arc::downgrade(slot), reached: slot.progressed() });
    }

    /// Takes progress of a call that is no longer in flight; says whether that was given a task.
    pub(super) fn progressed(&self, inbox: &dyn Inbox, params: Object) -> bool {
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

    fn lock(&self) -> MutexGuard<'_, VecDeque<One>> {
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
