//! A link as the questions of its upstream see it: which calls are open on it, and how it is answered.

use super::open::PendingQuestions;
use crate::call::caller::ClientSession;
use crate::protocol::frame;
use crate::protocol::frame::message::Id;
use crate::protocol::revision::Revision;
use crate::runtime::Tasks;
use crate::transport::exchange::mailbox::Mailbox;
use bytes::Bytes;
use std::sync::Arc;

/// A link on which an upstream can ask.
pub trait Asker: Send + Sync {
    /// What it has asked and not been answered.
    fn desk(&self) -> &PendingQuestions;

    /// The calls that are open on it and during which a client can be asked, oldest first.
    fn calls(&self) -> Vec<Arc<Mailbox>>;

    /// Writes an answer; nothing waits here. Where it is not taken the call whose question it was ends with that.
    fn answer(self: Arc<Self>, id: &Id, answer: &Answer, to: AnswerTo<'_>);

    /// The revision that is spoken, once that is known.
    fn revision(&self) -> Option<Revision>;

    /// Where its questions wait.
    fn tasks(&self) -> &Tasks;
}

/// What is answered, and the call that cannot go on without it.
#[derive(Clone, Copy)]
pub enum AnswerTo<'a> {
    /// A ping.
    Ping,
    /// What needs nobody for its answer, or is refused.
    AtOnce(Option<&'a Arc<Mailbox>>),
    /// A question that was put to a client.
    Question(Option<&'a Arc<Mailbox>>),
}

/// What a request of the upstream is answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A raw result.
    Result(Bytes),
    /// A raw error object.
    Error(Bytes),
}

impl Answer {
    /// The whole response frame, on one line.
    pub fn frame(&self, id: &[u8]) -> Bytes {
        let whole = match self {
            Self::Result(raw) => frame::message::result(id, raw),
            Self::Error(raw) => frame::message::error(Some(id), raw),
        };
        frame::message::one_line(Vec::from(whole)).into()
    }
}

/// What is said on a link from which a call has gone, to the questions that nobody answers any more: whole frames.
pub(crate) fn left(asker: &dyn Asker, gone: &Arc<Mailbox>) -> Vec<Bytes> {
    let desk = asker.desk();
    if desk.is_empty() {
        return Vec::new();
    }
    let calls = asker.calls();
    let is_there = |tenant: &ClientSession| calls.iter().any(|slot| slot.is_of(tenant));
    desk.left(gone, is_there).iter().map(|question| question.silence.clone()).collect()
}
