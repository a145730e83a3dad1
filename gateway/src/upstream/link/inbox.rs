//! Who hears what arrives on a link and belongs to no exchange.

use super::super::ails::Ail;
use super::asker::{Answer, Asker};
use super::slot::Slot;
use crate::protocol::{Id, Method, Object};
use std::sync::Arc;

/// Takes what belongs to no exchange. Nothing here waits: a link's reader calls it.
pub(crate) trait Inbox: Send + Sync {
    /// A notification.
    fn notified(&self, method: Method, params: Object);

    /// It may have told of changes that were not heard.
    fn missed(&self) {}

    /// Nothing more comes of a result that is told in chunks and has this name, raw.
    fn unfinished(&self, _id: &[u8]) {}

    /// A task that a call was given goes on; the progress token is the call's.
    fn task_progressed(&self, _task: &str, _params: Object) {}

    /// A request of the upstream, whose answer the link is given now or later.
    fn asked(&self, asked: Asked, by: Arc<dyn Asker>);

    /// Something ails the upstream, and why; or no longer does.
    fn ails(&self, _ail: Ail, _cause: Option<&str>) {}

    /// Something that the protocol does not allow; `kind` is a word of ours.
    fn violated(&self, kind: &'static str, detail: &dyn std::fmt::Display);

    /// What is probably wrong with the upstream, for a person.
    fn suspect(&self, cause: &str);
}

/// A request of the upstream.
#[derive(Debug)]
pub(crate) struct Asked {
    /// Echoed exactly.
    pub(crate) id: Id,
    pub(crate) method: Method,
    pub(crate) params: Object,
    /// The exchange on whose own stream it came.
    pub(crate) on: Option<Arc<Slot>>,
}

impl Asked {
    /// The call that cannot go on without the answer: not that of a ping, or of a word that nobody knows.
    fn call(&self) -> Option<&Arc<Slot>> {
        let is_question = matches!(self.method, Method::Elicitation | Method::Sampling | Method::RootsList);
        self.on.as_ref().filter(|_| is_question)
    }

    /// Answers it now.
    pub(crate) fn answer(&self, by: &Arc<dyn Asker>, answer: &Answer) {
        by.clone().answer(&self.id, answer, self.call());
    }
}
