//! The questions of an upstream that are open on one link: whose each is, and what is said where nobody answers.

use super::slot::Slot;
use crate::call::Tenant;
use crate::protocol::object::Key;
use crate::protocol::{Id, Object};
use bytes::Bytes;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// How many questions may be open on one exchange, or wait for one session that has no call.
pub(crate) const ON_ONE_MAX: usize = 16;
/// How many questions may be open on one link.
pub(crate) const ON_ALL_MAX: usize = 1024;

/// Whose a question is.
#[derive(Debug, Clone)]
pub(crate) enum Whose {
    /// That of one call: it ends with it.
    Call(Arc<Slot>),
    /// That of a session, for as long as it has a call open here.
    Session(Arc<Tenant>),
    /// That of the session that has the link for itself.
    Exclusive(Arc<Tenant>),
}

/// One question that is open. Dropping it ends its wait.
#[derive(Debug)]
pub(crate) struct Question {
    /// Ours, never used twice.
    pub(crate) key: u64,
    /// The upstream's, echoed exactly.
    pub(crate) id: Id,
    pub(crate) whose: Whose,
    /// The exchanges that it may belong to, whose time stands still meanwhile; it was put on the last of them.
    pub(crate) on: Vec<Arc<Slot>>,
    /// The whole response where there is no answer.
    pub(crate) silence: Bytes,
    /// Ends its wait.
    pub(crate) over: CancellationToken,
}

impl Drop for Question {
    fn drop(&mut self) {
        self.over.cancel();
        self.on.iter().for_each(|slot| slot.question_closed());
    }
}

/// The questions that are open on one link.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    /// How many there are: a call that ends looks here, and nearly always sees none.
    open: AtomicUsize,
    questions: Mutex<Vec<Question>>,
}

impl Desk {
    /// Takes a question in; gives it back where too many are open.
    pub(crate) fn open(&self, question: Question) -> Result<(), Question> {
        let mut questions = self.lock();
        let like_it = questions.iter().filter(|open| open.shares_its_place(&question)).count();
        if like_it >= ON_ONE_MAX || questions.len() >= ON_ALL_MAX {
            return Err(question);
        }
        question.on.iter().for_each(|slot| slot.question_opened());
        questions.push(question);
        self.open.store(questions.len(), Ordering::SeqCst);
        Ok(())
    }

    /// Takes the question of a key out, for whoever answers it; `None` where somebody else has.
    pub(crate) fn settle(&self, key: u64) -> Option<Question> {
        self.take(|question| question.key == key).pop()
    }

    /// The upstream has cancelled a request: the newest question of that id is over, and never answered.
    pub(crate) fn withdrawn(&self, params: &Object) {
        let Some(id) = params.get(Key::RequestId) else { return };
        let key = self.lock().iter().rev().find(|question| *question.id.raw() == id).map(|question| question.key);
        drop(key.and_then(|key| self.settle(key)));
    }

    /// Takes the questions out that nobody answers any more, now that a call has left; `is_there` says whether a session
    /// has another call open.
    pub(crate) fn left(&self, gone: &Arc<Slot>, is_there: impl Fn(&Tenant) -> bool) -> Vec<Question> {
        self.take(|question| match &question.whose {
            Whose::Call(slot) => Arc::ptr_eq(slot, gone),
            Whose::Session(tenant) => !is_there(tenant),
            Whose::Exclusive(_) => false,
        })
    }

    /// Takes all out.
    pub(crate) fn clear(&self) -> Vec<Question> {
        self.take(|_| true)
    }

    /// Whether no question is open.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.load(Ordering::SeqCst) == 0
    }

    fn take(&self, is_it: impl Fn(&Question) -> bool) -> Vec<Question> {
        let mut questions = self.lock();
        let taken: Vec<_> = questions.extract_if(.., |question| is_it(question)).collect();
        self.open.store(questions.len(), Ordering::SeqCst);
        taken
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Question>> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Question {
    /// The call that it belongs to, where it can be of no other.
    pub(crate) fn call(&self) -> Option<&Arc<Slot>> {
        match &self.on[..] {
            [call] => Some(call),
            _ => None,
        }
    }

    /// Whether both were put on one exchange, or on one session that has no call.
    fn shares_its_place(&self, other: &Self) -> bool {
        match (self.on.last(), other.on.last()) {
            (Some(one), Some(two)) => Arc::ptr_eq(one, two),
            (None, None) => {
                self.whose.tenant().map(|tenant| tenant.id()) == other.whose.tenant().map(|tenant| tenant.id())
            }
            _ => false,
        }
    }
}

impl Whose {
    /// The session whose it is.
    pub(crate) fn tenant(&self) -> Option<&Arc<Tenant>> {
        match self {
            Self::Call(_) => None,
            Self::Session(tenant) | Self::Exclusive(tenant) => Some(tenant),
        }
    }
}
