//! How a call ends: with a result, with a stateless upstream's question, or with an error.

use crate::call::refusal::Refusal;
use crate::protocol::frame::rpc_error::RpcError;
use crate::protocol::value::Object;

/// The one end of a reply.
#[derive(Debug)]
pub enum Outcome {
    /// A final result, its `resultType` inside where it has one.
    Complete(Object),
    /// A stateless upstream's question: the result with `inputRequests` and `requestState`.
    InputRequired(Object),
    /// An error.
    Error(Failure),
}

/// Whose error it is.
#[derive(Debug)]
pub enum Failure {
    /// The upstream's own JSON-RPC error: forwarded as it is where the client's revision knows its code.
    Upstream(RpcError),
    /// The gateway's refusal.
    Refused(Refusal),
}

impl Outcome {
    /// How many bytes of a peer are in it.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Complete(result) | Self::InputRequired(result) => result.raw().len(),
            Self::Error(Failure::Upstream(error)) => error.raw().len(),
            Self::Error(Failure::Refused(_)) => 0,
        }
    }
}

impl From<Refusal> for Outcome {
    fn from(refusal: Refusal) -> Self {
        Self::Error(Failure::Refused(refusal))
    }
}
