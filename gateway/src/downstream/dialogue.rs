//! What becomes of the questions that come up while a call goes on: by the era of the client.

use super::asked::Asked;
use super::edge::Edge;
use super::turns::Turn;
use crate::call::{Ask, Outcome, Reply};
use crate::protocol::Revision;
use std::sync::Arc;
use std::task::{Context, Poll};

/// How the client of a call is asked.
pub(super) enum Dialogue {
    /// It cannot be: every question is dropped, and whoever asks hears that there is no answer.
    Mute,
}

/// A call under way, as its dialogue may act on it.
pub(super) struct Line<'a> {
    /// Events and the outcome are read from it; a dialogue may put another in its place. It is not read beyond its outcome.
    pub(super) reply: &'a mut Reply,
    /// The client's request.
    pub(super) asked: &'a Asked,
    /// Where calls are made.
    pub(super) edge: &'a Arc<Edge>,
}

impl Dialogue {
    /// Takes a live question; what is to be said of it to the client comes with [`Self::poll`].
    pub(super) fn ask(&mut self, ask: Box<Ask>, _line: Line<'_>) {
        match self {
            Self::Mute => drop(ask),
        }
    }

    /// What is due; asked before each look at the reply. It may put another reply in place and be pending.
    pub(super) fn poll(&mut self, _line: Line<'_>, _cx: &mut Context<'_>) -> Poll<Turn> {
        match self {
            Self::Mute => Poll::Pending,
        }
    }

    /// What the client is answered for an outcome, and the revision that this is written in; `None` where the call is not
    /// over yet.
    pub(super) fn outcome(&mut self, outcome: Outcome, line: Line<'_>) -> Option<(Outcome, Revision)> {
        match self {
            Self::Mute => Some((outcome, line.reply.revision())),
        }
    }
}
