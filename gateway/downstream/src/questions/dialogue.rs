//! What becomes of the questions that come up while a call goes on: by the era of the client.

use super::live::LiveQuestions;
use super::park::ParkQuestions;
use crate::call::reply::Outcome;
use crate::call::reply::ask::Ask;
use crate::edge::CallContext;
use crate::protocol::revision::Revision;
use crate::response::steps::Turn;
use std::task::{Context, Poll};

/// How the client of a call is asked.
#[allow(clippy::large_enum_variant, reason = "it lies in the box of its call already")]
pub(crate) enum Dialogue {
    /// It cannot be: every question is dropped, and whoever asks hears that there is no answer.
    Mute,
    /// A stateless client: its call is parked, and it asks again.
    Stateless(ParkQuestions),
    /// A handshake client: it is asked live, on the call's own stream.
    Live(LiveQuestions),
}

impl Dialogue {
    /// Takes a live question; what is to be said of it to the client comes with [`Self::poll`].
    pub(crate) fn ask(&mut self, ask: Box<Ask>, line: CallContext<'_>) {
        match self {
            Self::Mute => drop(ask),
            Self::Stateless(stateless) => stateless.ask(ask, &line),
            Self::Live(asking) => asking.ask(ask, &line),
        }
    }

    /// What is due; asked before each look at the reply. It may put another reply in place and be pending.
    pub(crate) fn poll(&mut self, mut line: CallContext<'_>, cx: &mut Context<'_>) -> Poll<Turn> {
        match self {
            Self::Mute => Poll::Pending,
            Self::Stateless(stateless) => stateless.poll(&mut line, cx),
            Self::Live(asking) => asking.poll(&mut line, cx),
        }
    }

    /// What the client is answered for an outcome, and the revision that this is written in; `None` where the call is not
    /// over yet.
    pub(crate) fn outcome(&mut self, outcome: Outcome, line: CallContext<'_>) -> Option<(Outcome, Revision)> {
        match self {
            Self::Mute => Some((outcome, line.reply.revision())),
            Self::Stateless(stateless) => Some(stateless.outcome(outcome, &line)),
            Self::Live(asking) => asking.outcome(outcome, &line),
        }
    }

    /// The client has withdrawn the call: what is left to be said to it; nothing once nothing is.
    pub(crate) fn poll_cancel(&mut self, mut line: CallContext<'_>, cx: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        match self {
            Self::Mute | Self::Stateless(_) => Poll::Ready(None),
            Self::Live(asking) => asking.poll_cancel(&mut line, cx),
        }
    }
}
