//! Why an exchange has no answer.

use crate::health::Cause;
use crate::transport::http::{HttpStatusError, StatusClass};
use tokio::time::Instant;

/// What kept a request from leaving until its time was over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Withheld {
    /// The upstream does not read its input.
    Unread,
    /// No connection was free.
    Unconnected,
    /// There was no access token to show.
    Tokenless,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lost {
    /// Nothing of it was sent, for this reason.
    Unsent(Cause),
    /// The upstream does not run until a person starts it; nothing of it was sent.
    Stopped(Cause),
    /// A queue or a table is full; nothing of it was sent.
    Busy(Cause),
    /// Nothing is sent to the upstream before then, for this reason.
    Barred(Instant, Cause),
    /// It may or may not have run.
    Unknown(Cause),
    /// The upstream no longer knows the session: the request did not run.
    Session(Cause),
    /// An HTTP status without a JSON-RPC answer.
    Status(HttpStatusError),
    /// The upstream answered, but not as the protocol has it.
    Odd(Cause),
    /// It goes on with a call that this upstream knows nothing of; nothing of it was sent.
    Stray(Cause),
    /// The upstream answered, and the gateway had no memory left for the answer.
    Dropped(Cause),
}

impl Lost {
    /// Whether it came back to this gateway: a gateway below says so, or this one to itself.
    pub fn leads_back(&self) -> bool {
        matches!(self, Self::Status(refusal) if refusal.class() == StatusClass::Loop)
    }

    /// What happened, for a person.
    pub fn text(&self) -> &Cause {
        match self {
            Self::Unsent(text)
            | Self::Stopped(text)
            | Self::Busy(text)
            | Self::Unknown(text)
            | Self::Session(text)
            | Self::Odd(text)
            | Self::Dropped(text)
            | Self::Barred(_, text)
            | Self::Stray(text) => text,
            Self::Status(refusal) => &refusal.text,
        }
    }
}
