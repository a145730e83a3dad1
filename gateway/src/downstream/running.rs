//! A call under way: its reply read step by step into frames for the client.

use super::asked::{Answer, Asked};
use super::edge::Edge;
use super::open::OpenCall;
use crate::call::{Outcome, Refusal, Reply, Step};
use crate::lifecycle::Tasks;
use crate::protocol::Method;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// A call under way. Dropping it cancels the call, unless it has ended.
pub(super) struct Running {
    reply: Reply,
    pub(super) asked: Asked,
    /// Where a cancellation finds it; `None` where closing the stream is the only way.
    open: Option<OpenCall>,
    edge: Arc<Edge>,
    /// When a listen call is ended in good order, from our side.
    ending: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// What is read step by step into frames for the client: a call, or a batch of them.
pub(super) trait Turns: Send + 'static {
    /// The next frame; not to be called again after the end.
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Turn>;

    /// The next frame.
    fn turn(&mut self) -> impl Future<Output = Turn> + Send + '_ {
        std::future::poll_fn(|cx| self.poll_turn(cx))
    }
}

/// What a call under way comes to.
#[derive(Debug)]
pub(super) enum Turn {
    /// A notification for the client; the call goes on.
    Event(Vec<u8>),
    /// The response; nothing follows.
    End(Answer),
    /// The client has withdrawn the call: nothing more is sent for it.
    Cancelled,
}

impl Running {
    pub(super) fn new(edge: &Arc<Edge>, asked: Asked, reply: Reply, open: Option<OpenCall>) -> Self {
        Self { reply, asked, open, edge: edge.clone(), ending: None }
    }

    /// One that ends with a refusal at once.
    pub(super) fn refused(edge: &Arc<Edge>, asked: Asked, refusal: Refusal) -> Self {
        let reply = Reply::refuse(asked.revision, refusal);
        Self::new(edge, asked, reply, None)
    }

    /// A listen call, which never ends by itself, is ended in good order when `level` is told to end.
    pub(super) fn listening_until(mut self, level: &Tasks) -> Self {
        if self.asked.method == Method::Listen {
            let level = level.clone();
            self.ending = Some(Box::pin(async move { level.ending().await }));
        }
        self
    }

    fn poll_ending(&mut self, cx: &mut Context<'_>) -> Poll<Turn> {
        let Some(ending) = &mut self.ending else { return Poll::Pending };
        ready!(ending.as_mut().poll(cx));
        Poll::Ready(Turn::End(self.asked.listen_end(&self.edge.identity)))
    }

    fn answer(&self, outcome: Outcome) -> Answer {
        self.asked.answer(outcome, self.reply.revision(), self.reply.owner(), &self.edge.identity)
    }
}

impl Turns for Running {
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Turn> {
        if let Some(open) = &self.open
            && open.poll_cancelled(cx).is_ready()
        {
            return Poll::Ready(Turn::Cancelled);
        }
        loop {
            let Poll::Ready(step) = self.reply.poll_step(cx) else { return self.poll_ending(cx) };
            match step {
                Step::Event(event) => {
                    if let Some(frame) = self.asked.event(event, self.reply.revision()) {
                        return Poll::Ready(Turn::Event(frame));
                    }
                }
                Step::Done(outcome) => return Poll::Ready(Turn::End(self.answer(outcome))),
            }
        }
    }
}
