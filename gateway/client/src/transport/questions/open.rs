//! The questions of an upstream that are open on one link: whose each is, and what is said where nobody answers.

use crate::call::caller::ClientSession;
use crate::call::share::{Share, may_have};
use crate::protocol::frame::message::Id;
use crate::protocol::value::{Key, Object};
use crate::transport::exchange::mailbox::Mailbox;
use bytes::Bytes;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// How many questions may be open on one exchange, or wait for one session that has no call.
pub(crate) const ON_ONE_MAX: usize = 16;
/// How many questions may be open on one link; on the calls of one client alone half of them.
pub(crate) const ON_ALL_MAX: usize = 4096;

/// Whose a question is.
#[derive(Debug, Clone)]
pub enum Whose {
    /// That of one call: it ends with it.
    Call(Arc<Mailbox>),
    /// That of a session, for as long as it has a call open here.
    Session(Arc<ClientSession>),
    /// That of the session that has the link for itself.
    Exclusive(Arc<ClientSession>),
}

/// One question that is open. Dropping it ends its wait.
#[derive(Debug)]
pub struct Question {
    /// Ours, never used twice.
    pub key: u64,
    /// The upstream's, echoed exactly.
    pub id: Id,
    /// The owner.
    pub whose: Whose,
    /// The exchanges that it may belong to, whose time stands still meanwhile; it was put on the last of them.
    pub on: Vec<Arc<Mailbox>>,
    /// The whole response where there is no answer.
    pub silence: Bytes,
    /// Ends its wait.
    pub over: CancellationToken,
}

impl Drop for Question {
    fn drop(&mut self) {
        self.over.cancel();
        self.on.iter().for_each(|slot| slot.question_closed());
    }
}

/// The questions that are open on one link.
#[derive(Debug, Default)]
pub struct PendingQuestions {
    /// How many there are: a call that ends looks here, and nearly always sees none.
    open: AtomicUsize,
    questions: Mutex<Vec<Question>>,
}

impl PendingQuestions {
    /// Takes a question in; gives it back where too many are open.
    pub fn open(&self, question: Question) -> Result<(), Question> {
        let mut questions = self.lock();
        let like_it = questions.iter().filter(|open| open.shares_its_place(&question)).count();
        let of_share = questions.iter().filter(|open| open.share() == question.share()).count();
        if like_it >= ON_ONE_MAX || !may_have(of_share, ON_ALL_MAX.saturating_sub(questions.len())) {
            return Err(question);
        }
        question.on.iter().for_each(|slot| slot.question_opened());
        questions.push(question);
        self.open.store(questions.len(), Ordering::SeqCst);
        Ok(())
    }

    /// Takes the question of a key out, for whoever answers it; `None` where somebody else has.
    pub fn settle(&self, key: u64) -> Option<Question> {
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
    pub(crate) fn left(&self, gone: &Arc<Mailbox>, is_there: impl Fn(&ClientSession) -> bool) -> Vec<Question> {
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
    pub fn call(&self) -> Option<&Arc<Mailbox>> {
        match &self.on[..] {
            [call] => Some(call),
            _ => None,
        }
    }

    /// Whose share it takes, where that is known.
    fn share(&self) -> Option<&Share> {
        self.on.last().and_then(|slot| slot.share.as_ref())
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
    pub fn tenant(&self) -> Option<&Arc<ClientSession>> {
        match self {
            Self::Call(_) => None,
            Self::Session(tenant) | Self::Exclusive(tenant) => Some(tenant),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::caller::Principal;
    use crate::protocol::frame::Method;
    use crate::transport::exchange::Request;

    #[test]
    fn the_questions_on_one_clients_calls_leave_room_for_another() {
        let (pending, nothing) = (PendingQuestions::default(), Object::empty());
        let count = |name: &str| {
            let share = Some(Share::Principal(Principal::named(name)));
            let request = Request { share, ..Request::new(&Method::ToolsCall, &nothing, None) };
            let mut opened = 0;
            loop {
                let slot = Arc::new(Mailbox::of(&request));
                let open = |key: u64| {
                    let (whose, on) = (Whose::Call(slot.clone()), vec![slot.clone()]);
                    let (silence, over) = (Bytes::new(), CancellationToken::new());
                    let id = Id::from_raw(Bytes::from(key.to_string())).unwrap();
                    pending.open(Question { key, id, whose, on, silence, over }).is_ok()
                };
                let now = (0..ON_ONE_MAX as u64).filter(|key| open(opened as u64 + key)).count();
                opened += now;
                if now < ON_ONE_MAX {
                    return opened;
                }
            }
        };
        assert_eq!([count("ann"), count("bob")], [ON_ALL_MAX / 2, ON_ALL_MAX / 4]);
        assert_eq!(pending.clear().len(), ON_ALL_MAX / 4 * 3);
    }
}
