//! A question that an upstream has put live, while its call goes on.

use crate::protocol::frame::rpc_error::RpcError;
use crate::protocol::frame::{Method, rpc_error};
use crate::protocol::revision::Revision;
use crate::protocol::value::Object;
use std::sync::Arc;
use tokio::sync::oneshot;

/// A live question of an upstream to the caller of the call it belongs to.
///
/// Dropping `answer` means that there is none: the upstream edge tells its server by kind.
#[derive(Debug)]
pub struct Ask {
    /// Unique among the questions of its reply.
    pub key: u64,
    /// The upstream that asks.
    pub upstream: Arc<str>,
    /// Elicitation, sampling or roots.
    pub method: Method,
    /// The question, as the upstream wrote it.
    pub request: Object,
    /// What it is written in.
    pub revision: Revision,
    /// Takes the answer.
    pub answer: Answer,
}

/// What a client has answered, in the words of its own revision.
#[derive(Debug, Clone)]
pub struct Answered {
    /// What it is written in.
    pub revision: Revision,
    /// The result, or the error that a legacy client has answered with.
    pub body: Result<Object, RpcError>,
}

/// The handle that takes one answer.
#[derive(Debug)]
pub struct Answer(oneshot::Sender<Answered>);

/// The question was withdrawn before it was answered.
#[derive(Debug, thiserror::Error)]
#[error("the question was withdrawn")]
pub struct NoAnswer;

impl Answer {
    /// A handle, and where its answer arrives.
    pub fn new() -> (Self, oneshot::Receiver<Answered>) {
        let (sender, receiver) = oneshot::channel();
        (Self(sender), receiver)
    }

    /// Hands the answer over.
    pub fn give(self, answered: Answered) -> Result<(), NoAnswer> {
        self.0.send(answered).map_err(|_| NoAnswer)
    }

    /// Refuses the question in the client's place, which is not the same as a person who does not answer; `revision` is the
    /// upstream's.
    pub fn refuse(self, revision: Revision, why: &str) {
        // Whoever has withdrawn it does not need to know.
        let _ = self.give(Answered { revision, body: Err(RpcError::new(rpc_error::INTERNAL, why, None)) });
    }

    /// Whether the upstream has withdrawn the question.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Resolves when the upstream withdraws the question.
    pub async fn closed(&mut self) {
        self.0.closed().await;
    }

    /// As [`Self::closed`], polled.
    pub fn poll_closed(&mut self, cx: &mut std::task::Context<'_>) -> std::task::Poll<()> {
        self.0.poll_closed(cx)
    }
}
