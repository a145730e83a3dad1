//! A question that an upstream has put live, while its call goes on.

use crate::protocol::{Method, Object};
use bytes::Bytes;
use tokio::sync::oneshot;

/// A live question of an upstream to the caller of the call it belongs to.
///
/// Dropping `answer` means that there is none: the upstream edge tells its server by kind.
#[derive(Debug)]
pub struct Ask {
    /// Unique among the questions of its reply.
    pub key: u64,
    /// Elicitation, sampling or roots.
    pub method: Method,
    /// The question, in the revision of its reply.
    pub request: Object,
    /// Takes the answer.
    pub answer: Answer,
}

/// The handle that takes one answer.
#[derive(Debug)]
pub struct Answer(oneshot::Sender<Bytes>);

/// The question was withdrawn before it was answered.
#[derive(Debug, thiserror::Error)]
#[error("the question was withdrawn")]
pub struct NoAnswer;

impl Answer {
    /// A handle, and where its answer arrives.
    pub fn new() -> (Self, oneshot::Receiver<Bytes>) {
        let (sender, receiver) = oneshot::channel();
        (Self(sender), receiver)
    }

    /// Hands over the raw result.
    pub fn give(self, result: Bytes) -> Result<(), NoAnswer> {
        self.0.send(result).map_err(|_| NoAnswer)
    }

    /// Resolves when the upstream withdraws the question.
    pub async fn closed(&mut self) {
        self.0.closed().await;
    }
}
