//! Why an upstream did not come up, or a request of our own was not answered.

use super::link::{Lost, SpawnFault, advice};
use crate::protocol::error::RpcError;
use std::time::Duration;
use tokio::time::Instant;

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

impl From<&Lost> for Fault {
    fn from(lost: &Lost) -> Self {
        let kind = match lost {
            Lost::Status(refusal) if matches!(refusal.status, 401 | 403 | 407 | 508) => FaultKind::Hopeless,
            Lost::Status(refusal) => match refusal.retry_after {
                Some(pause) => FaultKind::NotBefore(pause),
                None => FaultKind::Passing,
            },
            Lost::Barred(until, _) => FaultKind::NotBefore(until.saturating_duration_since(Instant::now())),
            _ => FaultKind::Passing,
        };
        let what_to_do = match lost {
            Lost::Status(refusal) => advice(refusal.status),
            _ => "",
        };
        Self { text: format!("{}{what_to_do}", lost.text()), kind }
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
