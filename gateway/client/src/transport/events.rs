//! Who hears what arrives on a link and belongs to no exchange.

use super::condition::Condition;
use super::exchange::mailbox::Mailbox;
use super::questions::{Answer, AnswerTo, Asker};
use crate::health::{Cause, CauseCode};
use crate::memory::budget::Budget;
use crate::metrics::edges::Bytes;
use crate::protocol::frame::Method;
use crate::protocol::frame::message::Id;
use crate::protocol::value::Object;
use std::sync::Arc;

/// Takes what belongs to no exchange. Nothing here waits: a link's reader calls it.
pub trait LinkEvents: Send + Sync {
    /// A notification.
    fn notified(&self, method: Method, params: Object);

    /// It may have told of changes that were not heard.
    fn missed(&self) {}

    /// Nothing more comes of a result that is told in chunks and has this name, raw.
    fn unfinished(&self, _id: &[u8]) {}

    /// A task that a call was given goes on; the progress token is the call's.
    fn task_progressed(&self, _task: &str, _params: Object) {}

    /// A request of the upstream, whose answer the link is given now or later.
    fn asked(&self, asked: IncomingRequest, by: Arc<dyn Asker>);

    /// A condition of the upstream holds, and why; or no longer does.
    fn set_condition(&self, _condition: Condition, _cause: Option<&Cause>) {}

    /// Something that the protocol does not allow; `kind` is a word of ours.
    fn violated(&self, kind: &'static str, detail: &dyn std::fmt::Display);

    /// Where the bytes from and to the upstream are counted.
    fn bytes(&self) -> Bytes {
        Bytes::default()
    }

    /// What all peers together may make the gateway keep.
    fn budget(&self) -> &Budget;

    /// Something failed that breaks no rule of the protocol; `kind` is a word of ours.
    fn failed(&self, _kind: &'static str, _code: CauseCode, _why: &dyn std::fmt::Display) {}

    /// What is probably wrong with the upstream, for a person.
    fn suspect(&self, cause: &str);
}

/// A request of the upstream.
#[derive(Debug)]
pub struct IncomingRequest {
    /// Echoed exactly.
    pub id: Id,
    /// The method.
    pub method: Method,
    /// The parameters.
    pub params: Object,
    /// The exchange on whose own stream it came.
    pub on: Option<Arc<Mailbox>>,
}

impl IncomingRequest {
    /// The call that cannot go on without the answer: not that of a ping, or of a word that nobody knows.
    fn call(&self) -> Option<&Arc<Mailbox>> {
        let is_question = matches!(self.method, Method::Elicitation | Method::Sampling | Method::RootsList);
        self.on.as_ref().filter(|_| is_question)
    }

    /// Answers it now.
    pub fn answer(&self, by: &Arc<dyn Asker>, answer: &Answer) {
        let to = if self.method == Method::Ping { AnswerTo::Ping } else { AnswerTo::AtOnce(self.call()) };
        by.clone().answer(&self.id, answer, to);
    }
}

/// Hears nothing: where nothing comes on a connection but an answer.
pub(crate) struct Nobody(pub(crate) Budget);

impl LinkEvents for Nobody {
    fn notified(&self, _method: Method, _params: Object) {}

    fn asked(&self, _asked: IncomingRequest, _by: Arc<dyn Asker>) {}

    fn violated(&self, _kind: &'static str, _detail: &dyn std::fmt::Display) {}

    fn budget(&self) -> &Budget {
        &self.0
    }

    fn failed(&self, _kind: &'static str, _code: CauseCode, _why: &dyn std::fmt::Display) {}

    fn suspect(&self, _cause: &str) {}
}
