//! A link as the questions of its upstream see it: which calls are open on it, and how it is answered.

use super::desk::Desk;
use super::slot::Slot;
use crate::call::Tenant;
use crate::lifecycle::Tasks;
use crate::protocol::{Id, Revision, frame};
use bytes::Bytes;
use std::sync::Arc;

/// A link on which an upstream can ask.
pub(crate) trait Asker: Send + Sync {
    /// What it has asked and not been answered.
    fn desk(&self) -> &Desk;

    /// The calls that are open on it and during which a client can be asked, oldest first.
    fn calls(&self) -> Vec<Arc<Slot>>;

    /// Writes an answer; nothing waits here. Where it is not taken `call`, whose question it was, ends with that.
    fn answer(self: Arc<Self>, id: &Id, answer: &Answer, call: Option<&Arc<Slot>>);

    /// The revision that is spoken, once that is known.
    fn revision(&self) -> Option<Revision>;

    /// Where its questions wait.
    fn tasks(&self) -> &Tasks;
}

/// What a request of the upstream is answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A raw result.
    Result(Bytes),
    /// A raw error object.
    Error(Bytes),
}

impl Answer {
    /// The whole response frame, on one line.
    pub(crate) fn frame(&self, id: &[u8]) -> Bytes {
        let whole = match self {
            Self::Result(raw) => frame::result(id, raw),
            Self::Error(raw) => frame::error(Some(id), raw),
        };
        frame::one_line(whole.into()).into()
    }
}

/// What is said on a link from which a call has gone, to the questions that nobody answers any more: whole frames.
pub(super) fn left(asker: &dyn Asker, gone: &Arc<Slot>) -> Vec<Bytes> {
    let desk = asker.desk();
    if desk.is_empty() {
        return Vec::new();
    }
    let calls = asker.calls();
    let is_there = |tenant: &Tenant| calls.iter().any(|slot| slot.is_of(tenant));
    desk.left(gone, is_there).iter().map(|question| question.silence.clone()).collect()
}
