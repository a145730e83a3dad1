//! Who hears of the progress of a task that is driven: whatever is told under its id, the latest alone.

use crate::protocol::value::Object;
use slab::Slab;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// The tasks that are driven, as far as their callers want progress.
#[derive(Debug, Clone, Default)]
pub(crate) struct TaskProgress(Arc<Mutex<Slab<One>>>);

#[derive(Debug)]
struct One {
    task: Box<str>,
    latest: Option<Object>,
    waker: Option<Waker>,
}

/// An ear for one task; closed when dropped.
pub(crate) struct ProgressListener {
    all: Arc<Mutex<Slab<One>>>,
    key: usize,
}

impl TaskProgress {
    /// Begins to hear of a task.
    pub(crate) fn listen(&self, task: &str) -> ProgressListener {
        let key = lock(&self.0).insert(One { task: task.into(), latest: None, waker: None });
        ProgressListener { all: self.0.clone(), key }
    }

    /// A task goes on; says whether anybody here hears of it.
    pub(crate) fn told(&self, task: &str, params: &Object) -> bool {
        let mut all = lock(&self.0);
        let mut wakers = Vec::new();
        let mut is_heard = false;
        for (_, one) in all.iter_mut().filter(|(_, one)| *one.task == *task) {
            one.latest = Some(params.clone());
            wakers.extend(one.waker.take());
            is_heard = true;
        }
        drop(all);
        wakers.into_iter().for_each(Waker::wake);
        is_heard
    }
}

impl ProgressListener {
    /// What was told last.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<Object> {
        let mut all = lock(&self.all);
        let one = &mut all[self.key];
        if let Some(params) = one.latest.take() {
            return Poll::Ready(params);
        }
        one.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for ProgressListener {
    fn drop(&mut self) {
        lock(&self.all).remove(self.key);
    }
}

fn lock(all: &Mutex<Slab<One>>) -> MutexGuard<'_, Slab<One>> {
    all.lock().unwrap_or_else(PoisonError::into_inner)
}
