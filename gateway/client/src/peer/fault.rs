//! Why an upstream did not come up, or a request of our own was not answered.

use crate::health::{Cause, CauseCode};
use crate::protocol::frame::rpc_error::RpcError;
use crate::runtime::aside;
use crate::secrets::{mask, printable};
use crate::transport::exchange::Lost;
use crate::transport::http::StatusClass;
use crate::transport::stdio::SpawnFault;
use std::time::Duration;
use tokio::time::Instant;

/// How long a server is left alone that closed a WebSocket because it restarts or has too much to do.
const BUSY_PAUSE: Duration = Duration::from_secs(5);

/// Why an upstream did not come up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What happened and what to do, for a person.
    pub text: Cause,
    /// What it means for the next attempt.
    pub kind: FaultKind,
}

/// What a fault means for the next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// It may pass by itself.
    Passing,
    /// The upstream asked us to wait at least this long.
    NotBefore(Duration),
    /// It will not pass by itself: looked at again once in a while.
    Hopeless,
    /// A child ended after it was asked which era it speaks: it is started once more and not asked.
    EndedWhenAsked,
}

impl FaultKind {
    /// What the end of a link means for the next attempt.
    pub fn of_end(cause: &Cause) -> Self {
        match cause.code() {
            // It is told why by a person's rule: asking again soon changes nothing.
            CauseCode::WebSocketClosed(1008 | 4401 | 4403)
            | CauseCode::TokenRefused
            | CauseCode::ClientTokenRefused
            | CauseCode::LoginRequired => Self::Hopeless,
            CauseCode::WebSocketClosed(1012 | 1013) => Self::NotBefore(BUSY_PAUSE),
            _ => Self::Passing,
        }
    }
}

impl Fault {
    /// Creates a fault that may pass by itself.
    pub fn passing(text: Cause) -> Self {
        Self { text, kind: FaultKind::Passing }
    }

    /// Creates a fault that lasts until a person acts.
    pub fn hopeless(text: Cause) -> Self {
        Self { text, kind: FaultKind::Hopeless }
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
            Lost::Status(refusal) if refusal.class().is_about_credentials() || refusal.class() == StatusClass::Loop => {
                FaultKind::Hopeless
            }
            Lost::Status(refusal) => match refusal.retry_after {
                Some(pause) => FaultKind::NotBefore(pause),
                None => FaultKind::Passing,
            },
            Lost::Barred(until, _) => FaultKind::NotBefore(until.saturating_duration_since(Instant::now())),
            lost => FaultKind::of_end(lost.text()),
        };
        Self { text: lost.text().clone(), kind }
    }
}

/// Why a request of our own has no result.
#[derive(Debug, Clone)]
pub enum Trouble {
    /// There was no answer.
    Lost(Lost),
    /// The upstream answered with an error.
    Refused(RpcError),
    /// The answer is not what the protocol has.
    Odd(&'static str),
    /// The answer took too long.
    Late(Duration),
}

impl Trouble {
    /// There is no memory left for what the upstream offers.
    pub fn full() -> Self {
        Self::Lost(Lost::Dropped(Cause::new(CauseCode::MemoryFull, "no room for it within `server.memory_limit`")))
    }

    /// Whether the gateway has no memory for the whole of it.
    pub fn is_about_memory(&self) -> bool {
        matches!(self, Self::Lost(Lost::Dropped(_)))
    }

    /// What happened, for a person.
    pub fn cause(&self) -> Cause {
        match self {
            Self::Lost(lost) => lost.text().clone(),
            Self::Refused(error) => refused(error),
            Self::Odd(why) => Cause::new(CauseCode::ResponseInvalid, *why),
            Self::Late(limit) => Cause::new(CauseCode::TimedOut, format!("no answer within {} s", limit.as_secs_f32())),
        }
    }
}

/// An upstream's error to a request of our own: its words are for the operator.
pub fn refused(error: &RpcError) -> Cause {
    let (code, message) = (error.code().unwrap_or_default(), error.message().unwrap_or_default());
    Cause::new(CauseCode::JsonRpcError(code), format!("error {code}")).foreign(&format!(": {}", in_short(&message)))
}

/// A foreign text as the operator is shown it: without secrets, which are masked before it is cut.
pub fn in_short(text: &str) -> String {
    const CHARS_MAX: usize = 300;
    printable(&aside(mask::cost(text.len()), || mask::masked(text)).chars().take(CHARS_MAX).collect::<String>())
}
