//! Which tasks were given to whom.

use crate::call::{Caller, Principal};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many tasks are remembered, in all and of one owner; the oldest is forgotten.
const TASKS_MAX: usize = 4096;
const OF_ONE_MAX: usize = 256;
/// Tasks with longer ids are not remembered.
const ID_BYTES_MAX: usize = 1024;

/// The tasks that were given out, oldest first.
#[derive(Default)]
pub(super) struct Ledger(Mutex<VecDeque<Entry>>);

struct Entry {
    whose: Whose,
    task: Task,
}

/// A task: its upstream, and its id there.
pub(super) type Task = (Arc<str>, Arc<str>);

/// Who is shown a task. Where nobody says who they are, nothing is known of two sessions but that they are two.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Whose {
    Session(Arc<str>),
    Principal(Principal),
}

impl Whose {
    fn of(caller: &Caller) -> Option<Self> {
        match caller.principal == Principal::anonymous() {
            true => caller.tenant.as_ref().map(|tenant| Self::Session(tenant.id().clone())),
            false => Some(Self::Principal(caller.principal.clone())),
        }
    }
}

impl Ledger {
    /// A caller was given a task.
    pub(super) fn given(&self, upstream: &Arc<str>, caller: &Caller, own: &str) {
        let Some(whose) = Whose::of(caller).filter(|_| own.len() <= ID_BYTES_MAX) else { return };
        let mut entries = self.lock();
        if entries.iter().any(|one| one.whose == whose && one.task.0 == *upstream && *one.task.1 == *own) {
            return;
        }
        let mut theirs = entries.iter().enumerate().filter(|(_, one)| one.whose == whose).map(|(at, _)| at);
        let oldest = theirs.next().filter(|_| theirs.count() + 1 >= OF_ONE_MAX);
        if let Some(at) = oldest.or_else(|| (entries.len() >= TASKS_MAX).then_some(0)) {
            entries.remove(at);
        }
        entries.push_back(Entry { whose, task: (upstream.clone(), own.into()) });
    }

    /// So many of a caller's tasks, behind this one or from the first; `None` where that one is not theirs.
    pub(super) fn after(&self, caller: &Caller, last: Option<&Task>, count: usize) -> Option<Vec<Task>> {
        let Some(whose) = Whose::of(caller) else { return last.is_none().then(Vec::new) };
        let entries = self.lock();
        let mut theirs = entries.iter().filter(|one| one.whose == whose).map(|one| &one.task);
        if let Some(last) = last {
            theirs.find(|task| *task == last)?;
        }
        Some(theirs.take(count).cloned().collect())
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
