//! Which tasks were given to whom.

use crate::call::Ledger;
use crate::call::caller::{Caller, Principal};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many tasks are remembered, in all and of one owner; then the oldest of that owner is forgotten, or of the client that has most.
const TASKS_MAX: usize = 4096;
const OF_ONE_MAX: usize = 256;
/// Tasks with longer ids are not remembered.
const ID_BYTES_MAX: usize = 1024;

/// The tasks that were given out, oldest first.
pub(crate) struct GrantedTasks(Mutex<Ledger<Entry>>);

impl Default for GrantedTasks {
    fn default() -> Self {
        Self(Mutex::new(Ledger::new(TASKS_MAX)))
    }
}

struct Entry {
    whose: Whose,
    task: Task,
}

/// A task: its upstream, and its id there.
pub(crate) type Task = (Arc<str>, Arc<str>);

/// Who is shown a task. Where nobody says who they are, nothing is known of two sessions but that they are two.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Whose {
    Session(Arc<str>),
    Principal(Principal),
}

impl Whose {
    fn of(caller: &Caller) -> Option<Self> {
        match caller.principal.is_anonymous() {
            true => caller.tenant.as_ref().map(|tenant| Self::Session(tenant.id().clone())),
            false => Some(Self::Principal(caller.principal.clone())),
        }
    }
}

impl GrantedTasks {
    /// A caller was given a task.
    pub(crate) fn given(&self, upstream: &Arc<str>, caller: &Caller, own: &str) {
        let Some(whose) = Whose::of(caller).filter(|_| own.len() <= ID_BYTES_MAX) else { return };
        let mut entries = self.lock();
        if entries.iter().any(|one| one.whose == whose && one.task.0 == *upstream && *one.task.1 == *own) {
            return;
        }
        let mut theirs = entries.iter().enumerate().filter(|(_, one)| one.whose == whose).map(|(at, _)| at);
        if let Some(oldest) = theirs.next().filter(|_| theirs.count() + 1 >= OF_ONE_MAX) {
            entries.remove(oldest);
        }
        entries.push(&caller.share(), Entry { whose, task: (upstream.clone(), own.into()) });
    }

    /// Whether a caller was given a task. Where nobody says who they are and there is no session, nothing is known of that.
    pub(crate) fn has(&self, caller: &Caller, upstream: &str, own: &str) -> bool {
        let Some(whose) = Whose::of(caller) else { return false };
        self.lock().iter().any(|one| one.whose == whose && *one.task.0 == *upstream && *one.task.1 == *own)
    }

    /// So many of a caller's tasks, behind this one or from the first; `None` where that one is not theirs.
    pub(crate) fn after(&self, caller: &Caller, last: Option<&Task>, count: usize) -> Option<Vec<Task>> {
        let Some(whose) = Whose::of(caller) else { return last.is_none().then(Vec::new) };
        let entries = self.lock();
        let mut theirs = entries.iter().filter(|one| one.whose == whose).map(|one| &one.task);
        if let Some(last) = last {
            theirs.find(|task| *task == last)?;
        }
        Some(theirs.take(count).cloned().collect())
    }

    fn lock(&self) -> MutexGuard<'_, Ledger<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
