//! Why an upstream did not come up, or a request of our own was not answered.

use super::link::{Lost, SpawnFault};
use crate::protocol::error::RpcError;
use std::time::Duration;

/// Why an upstream did not come up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub(crate) struct Fault {
    /// What happened and what to do, for a person.
    pub(crate) text: String,
    /// What it means for the next attempt.
    pub(crate) kind: FaultKind,
}

/// What a fault means for the next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultKind {
    /// It may pass by itself.
    Passing,
    /// The upstream asked us to wait at least this long.
    NotBefore(Duration),
    /// It will not pass by itself: looked at again once in a while.
    Hopeless,
    /// A child ended after it was asked which era it speaks: it is started once more and not asked.
    EndedWhenAsked,
}

impl Fault {
    pub(crate) fn passing(text: impl Into<String>) -> Self {
        Self { text: text.into(), kind: FaultKind::Passing }
    }

    pub(crate) fn hopeless(text: impl Into<String>) -> Self {
        Self { text: text.into(), kind: FaultKind::Hopeless }
    }
}

impl From<SpawnFault> for Fault {
    fn from(fault: SpawnFault) -> Self {
        Self { text: fault.text, kind: if fault.is_passing { FaultKind::Passing } else { FaultKind::Hopeless } }
    }
}

/// The longest wait that an upstream can ask for.
const RETRY_AFTER_MAX: u64 = 60;

impl From<&Lost> for Fault {
    fn from(lost: &Lost) -> Self {
        let kind = match lost {
            Lost::Status(refusal) if matches!(refusal.status, 401 | 403 | 407) => FaultKind::Hopeless,
            Lost::Status(refusal) => match refusal.retry_after {
                Some(seconds) => FaultKind::NotBefore(Duration::from_secs(seconds.min(RETRY_AFTER_MAX))),
                None => FaultKind::Passing,
            },
            _ => FaultKind::Passing,
        };
        Self { text: lost.text().to_string(), kind }
    }
}

/// Why a request of our own has no result.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Trouble {
    /// There was no answer.
    #[error("{}", .0.text())]
    Lost(Lost),
    /// The upstream answered with an error.
    #[error("error {}: {}", .0.code().unwrap_or_default(), .0.message().unwrap_or_default())]
    Refused(RpcError),
    /// The answer is not what the protocol has.
    #[error("{0}")]
    Odd(&'static str),
    /// The answer took too long.
    #[error("no answer within {} s", .0.as_secs_f32())]
    Late(Duration),
}
