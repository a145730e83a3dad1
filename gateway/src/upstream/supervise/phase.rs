//! The phases of an upstream's life.

use super::control::{Rest, Told};
use super::restart::Decision;
use crate::peer::Peer;
use crate::runtime::Tasks;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Where an upstream stands. Its supervisor alone moves it; the health board mirrors it.
pub(super) enum Phase {
    /// It does not run until a call needs it, or an order starts it.
    Idle,
    /// It does not run until an order starts it. The board says `stopped`, or `failed` where the restart policy has it stay so.
    Stopped,
    /// A link to it is opened, and it is met.
    Starting,
    /// It was met. The board says `ready`, or `degraded`, once its lists were read.
    Up(Life),
    /// It takes no more calls, and what is left of it is being ended.
    Stopping(Leaving),
    /// Its next attempt is due after a pause. The board says `failed` where attempts have become rare.
    BackingOff(Pause),
    /// The gateway needs it no more.
    Ended,
}

/// One upstream that was met.
pub(super) struct Life {
    /// What belongs to this life alone.
    pub(super) level: Tasks,
    pub(super) peer: Arc<Peer>,
    /// Since when.
    pub(super) met: Instant,
}

/// The end of one life.
pub(super) struct Leaving {
    pub(super) level: Tasks,
    pub(super) then: Then,
}

/// What follows the end of a life.
pub(super) enum Then {
    /// Nothing: the gateway ends.
    End,
    /// What was ordered, or rest.
    Told(Told),
    /// What the restart policy decides.
    Decided(Decision),
}

/// The pause before an attempt.
pub(super) struct Pause {
    pub(super) delay: Duration,
    /// What the attempt is for, in a word.
    pub(super) reason: &'static str,
}

impl From<Option<Rest>> for Phase {
    fn from(rest: Option<Rest>) -> Self {
        match rest {
            None => Self::Starting,
            Some(Rest::Needed) => Self::Idle,
            Some(Rest::Ordered) => Self::Stopped,
        }
    }
}
