//! How a call ends: with a result, with a stateless upstream's question, or with an error.

use crate::metrics::OUTCOMES;
use crate::protocol::frame::rpc_error::RpcError;
use crate::protocol::value::{Key, Object};
use crate::refusal::{Reason, Refusal};

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

/// Where an outcome's word stands among [`OUTCOMES`]; a word that is not there does not compile.
const fn place_of(word: &str) -> usize {
    let mut at = 0;
    while !equal(OUTCOMES[at].as_bytes(), word.as_bytes()) {
        at += 1;
    }
    at
}

const fn equal(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

impl Outcome {
    /// The place of `ok` in [`OUTCOMES`].
    pub const OK: usize = place_of("ok");
    /// That of a call whose client withdrew it.
    pub const CANCELLED: usize = place_of("cancelled");
    /// That of a call whose client waits no longer.
    pub const CLIENT_GONE: usize = place_of("client_gone");
    /// That of an error of the upstream.
    pub const RPC_ERROR: usize = place_of("rpc_error");
    /// That of a call of which nothing ran.
    pub const UPSTREAM_UNAVAILABLE: usize = place_of("upstream_unavailable");
    /// That of a call that may have run.
    pub const OUTCOME_UNKNOWN: usize = place_of("outcome_unknown");

    /// Its place in [`OUTCOMES`].
    pub fn place(&self) -> usize {
        match self {
            Self::Complete(result) if result.get(Key::IsError) == Some(b"true") => const { place_of("tool_error") },
            Self::Complete(_) | Self::InputRequired(_) => Self::OK,
            Self::Error(Failure::Upstream(_)) => Self::RPC_ERROR,
            Self::Error(Failure::Refused(refusal)) => refused(refusal),
        }
    }

    /// How many bytes of a peer are in it.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Complete(result) | Self::InputRequired(result) => result.raw().len(),
            Self::Error(Failure::Upstream(error)) => error.raw().len(),
            Self::Error(Failure::Refused(_)) => 0,
        }
    }
}

/// The place of a refusal.
fn refused(refusal: &Refusal) -> usize {
    match refusal.reason {
        _ if refusal.is_denied => const { place_of("denied") },
        Reason::Timeout => const { place_of("timeout") },
        Reason::Cancelled => Outcome::CANCELLED,
        Reason::Unavailable | Reason::Stopped | Reason::Login => Outcome::UPSTREAM_UNAVAILABLE,
        Reason::Busy => const { place_of("busy") },
        Reason::Limited(_) => const { place_of("rejected") },
        Reason::BadAnswer | Reason::Scope => const { place_of("bad_answer") },
        Reason::OutcomeUnknown => Outcome::OUTCOME_UNKNOWN,
        _ => Outcome::RPC_ERROR,
    }
}

impl From<Refusal> for Outcome {
    fn from(refusal: Refusal) -> Self {
        Self::Error(Failure::Refused(refusal))
    }
}
