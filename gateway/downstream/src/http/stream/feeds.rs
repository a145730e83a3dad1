//! What streams are fed from: a modern call, a legacy call's replay, a session's notices.

use super::events::{Fed, Feed};
use crate::edge::Edge;
use crate::response::steps::{StepQueue, Turn};
use crate::running::RunningCall;
use crate::session::client::{Attached, Session};
use crate::session::{Reader, event_id};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A modern call: the stream is the call, and dropping it cancels.
pub(crate) struct CallFeed {
    first: Option<Vec<u8>>,
    running: RunningCall,
}

impl CallFeed {
    pub(crate) fn new(running: RunningCall, first: Option<Vec<u8>>) -> Self {
        Self { first, running }
    }
}

impl Feed for CallFeed {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Fed>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Fed::event(first)));
        }
        self.running.poll_turn(cx).map(|turn| match turn {
            Turn::Event(frame) => Some(Fed::event(frame)),
            Turn::End(answer) => Some(Fed::end(answer)),
            Turn::Cancelled => None,
        })
    }
}

/// A legacy call's stream, read from its replay.
pub(crate) struct ReplayFeed {
    reader: Reader,
    /// Without a session nobody can come back, and events have no id.
    has_ids: bool,
    _attached: Attached,
}

impl ReplayFeed {
    pub(crate) fn new(session: &Arc<Session>, reader: Reader) -> Self {
        Self { reader, has_ids: session.lasts, _attached: session.attach() }
    }
}

impl Feed for ReplayFeed {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Fed>> {
        self.reader.poll_next(cx).map(|event| {
            event.map(|(number, frame)| Fed {
                id: self.has_ids.then(|| event_id(self.reader.stream(), number)),
                frame,
                is_last: self.reader.is_done(),
            })
        })
    }
}

/// A session's notices.
pub(crate) struct NoticeFeed {
    session: Arc<Session>,
    reader: u64,
    /// Resolves when the face is told to end.
    ending: Pin<Box<dyn Future<Output = ()> + Send>>,
    _attached: Attached,
}

impl NoticeFeed {
    /// Takes over from whichever stream read them before.
    pub(crate) fn new(edge: &Arc<Edge>, session: &Arc<Session>) -> Self {
        let reader = session.notices.take_over();
        let edge = edge.clone();
        let ending = Box::pin(async move { edge.tasks.ending().await });
        Self { session: session.clone(), reader, ending, _attached: session.attach() }
    }

    /// Which of the session's notice streams this is.
    pub(crate) fn reader(&self) -> u64 {
        self.reader
    }
}

impl Feed for NoticeFeed {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Fed>> {
        match self.session.notices.poll_next(self.reader, cx) {
            Poll::Ready(frame) => Poll::Ready(frame.map(Fed::event)),
            Poll::Pending => self.ending.as_mut().poll(cx).map(|()| None),
        }
    }
}
