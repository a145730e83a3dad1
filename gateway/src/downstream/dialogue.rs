//! What becomes of the questions that come up while a call goes on: by the era of the client.

use super::asking::Asking;
use super::line::Line;
use super::stateless::Stateless;
use super::turns::Turn;
use crate::call::{Ask, Outcome};
use crate::protocol::Revision;
use std::task::{Context, Poll};

/// How the client of a call is asked.
pub(super) enum Dialogue {
    /// It cannot be: every question is dropped, and whoever asks hears that there is no answer.
    Mute,
    /// A stateless client: its call is parked, and it asks again.
    Stateless(Stateless),
    /// A handshake client: it is asked live, on the call's own stream.
    Live(Box<Asking>),
}

impl Dialogue {
    /// Takes a live question; what is to be said of it to the client comes with [`Self::poll`].
    pub(super) fn ask(&mut self, ask: Box<Ask>, line: Line<'_>) {
        match self {
            Self::Mute => drop(ask),
            Self::Stateless(stateless) => stateless.ask(ask, &line),
            Self::Live(asking) => asking.ask(ask, &line),
        }
    }

    /// What is due; asked before each look at the reply. It may put another reply in place and be pending.
    pub(super) fn poll(&mut self, mut line: Line<'_>, cx: &mut Context<'_>) -> Poll<Turn> {
        match self {
            Self::Mute => Poll::Pending,
            Self::Stateless(stateless) => stateless.poll(&mut line, cx),
            Self::Live(asking) => asking.poll(&mut line, cx),
        }
    }

    /// What the client is answered for an outcome, and the revision that this is written in; `None` where the call is not
    /// over yet.
    pub(super) fn outcome(&mut self, outcome: Outcome, line: Line<'_>) -> Option<(Outcome, Revision)> {
        match self {
            Self::Mute => Some((outcome, line.reply.revision())),
            Self::Stateless(stateless) => Some(stateless.outcome(outcome, &line)),
            Self::Live(asking) => asking.outcome(outcome, &line),
        }
    }

    /// The client has withdrawn the call: what is left to be said to it; nothing once nothing is.
    pub(super) fn poll_cancel(&mut self, mut line: Line<'_>, cx: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        match self {
            Self::Mute | Self::Stateless(_) => Poll::Ready(None),
            Self::Live(asking) => asking.poll_cancel(&mut line, cx),
        }
    }
}
