//! What streams are fed from: a modern call, a legacy call's replay, a session's notices.

use super::stream::{Fed, Feed};
use crate::downstream::edge::Edge;
use crate::downstream::replay::Reader;
use crate::downstream::running::{Running, Turn, Turns};
use crate::downstream::session::{Attached, Session};
use crate::downstream::streams::event_id;
use crate::protocol::Method;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// Resolves when the face is told to end.
type Ending = Pin<Box<dyn Future<Output = ()> + Send>>;

fn ending(edge: &Arc<Edge>) -> Ending {
    let edge = edge.clone();
    Box::pin(async move { edge.tasks.ending().await })
}

/// A modern call: the stream is the call, and dropping it cancels.
pub(super) struct CallFeed {
    first: Option<Vec<u8>>,
    running: Running,
    /// Listen calls are ended in good order when the face is.
    ending: Option<Ending>,
}

impl CallFeed {
    pub(super) fn new(edge: &Arc<Edge>, running: Running, first: Option<Vec<u8>>) -> Self {
        let ending = (running.asked.method == Method::Listen).then(|| ending(edge));
        Self { first, running, ending }
    }
}

impl Feed for CallFeed {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Fed>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Fed::event(first)));
        }
        match self.running.poll_turn(cx) {
            Poll::Ready(Turn::Event(frame)) => Poll::Ready(Some(Fed::event(frame))),
            Poll::Ready(Turn::End(answer)) => Poll::Ready(Some(Fed::end(answer.frame))),
            Poll::Ready(Turn::Cancelled) => Poll::Ready(None),
            Poll::Pending => {
                let Some(ending) = &mut self.ending else { return Poll::Pending };
                ready!(ending.as_mut().poll(cx));
                Poll::Ready(Some(Fed::end(self.running.listen_end().frame)))
            }
        }
    }
}

/// A legacy call's stream, read from its replay.
pub(super) struct ReplayFeed {
    reader: Reader,
    /// Without a session nobody can come back, and events have no id.
    has_ids: bool,
    _attached: Attached,
}

impl ReplayFeed {
    pub(super) fn new(session: &Arc<Session>, reader: Reader) -> Self {
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
pub(super) struct NoticeFeed {
    session: Arc<Session>,
    reader: u64,
    ending: Ending,
    _attached: Attached,
}

impl NoticeFeed {
    /// Takes over from whichever stream read them before.
    pub(super) fn new(edge: &Arc<Edge>, session: &Arc<Session>) -> Self {
        let reader = session.notices.take_over();
        Self { session: session.clone(), reader, ending: ending(edge), _attached: session.attach() }
    }

    /// Which of the session's notice streams this is.
    pub(super) fn reader(&self) -> u64 {
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
