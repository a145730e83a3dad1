//! A call under way: its reply read step by step into frames for the client.

use super::asked::{Answer, Asked};
use super::dialogue::Dialogue;
use super::edge::Edge;
use super::line::Line;
use super::open::OpenCall;
use super::stateless::Stateless;
use super::turns::{Cut, Turn, Turns};
use crate::call::{Call, Event, Failure, Outcome, Reason, Refusal, Reply, Step};
use crate::lifecycle::Tasks;
use crate::protocol::Method;
use crate::protocol::Revision;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

/// A call under way. Dropping it cancels the call, unless it has ended.
pub(super) struct Running {
    reply: Reply,
    pub(super) asked: Asked,
    /// Where a cancellation finds it; `None` where closing the stream is the only way.
    open: Option<OpenCall>,
    edge: Arc<Edge>,
    /// When a listen call is ended in good order, from our side.
    ending: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// What becomes of the questions that come up.
    dialogue: Dialogue,
}

impl Running {
    pub(super) fn new(edge: &Arc<Edge>, asked: Asked, reply: Reply, open: Option<OpenCall>) -> Self {
        Self { reply, asked, open, edge: edge.clone(), ending: None, dialogue: Dialogue::Mute }
    }

    /// A call whose client can be asked.
    pub(super) fn asking(mut self, dialogue: Dialogue) -> Self {
        self.dialogue = dialogue;
        self
    }

    /// A stateless client's call.
    pub(super) fn stateless(edge: &Arc<Edge>, asked: Asked, call: Call, open: Option<OpenCall>) -> Self {
        if !call.method.is_long() {
            return Self::new(edge, asked, edge.call(call), open);
        }
        let dialogue = Stateless::new(&call);
        Self::made(edge, asked, call, open, dialogue)
    }

    /// A call whose client is asked in this way; the call may differ from what the client wrote.
    pub(super) fn made(
        edge: &Arc<Edge>,
        asked: Asked,
        call: Call,
        open: Option<OpenCall>,
        dialogue: Stateless,
    ) -> Self {
        Self::resumed(edge, asked, edge.call(call), open, dialogue)
    }

    /// A call that is under way already.
    pub(super) fn resumed(
        edge: &Arc<Edge>,
        asked: Asked,
        reply: Reply,
        open: Option<OpenCall>,
        dialogue: Stateless,
    ) -> Self {
        Self { dialogue: Dialogue::Stateless(dialogue), ..Self::new(edge, asked, reply, open) }
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

    fn event(&mut self, event: Event) -> Option<Vec<u8>> {
        match event {
            Event::Ask(ask) => {
                let line = Line { reply: &mut self.reply, asked: &self.asked, edge: &self.edge };
                self.dialogue.ask(ask, line);
                None
            }
            event => self.asked.event(event, self.reply.revision()),
        }
    }

    /// The end; nothing where the client is to be asked first.
    fn outcome(&mut self, outcome: Outcome) -> Option<Turn> {
        let outcome = self.labelled(outcome);
        let line = Line { reply: &mut self.reply, asked: &self.asked, edge: &self.edge };
        let (outcome, from) = self.dialogue.outcome(outcome, line)?;
        Some(Turn::End(self.answer(outcome, from)))
    }

    /// Pages that are needed first say who needs them; a stateless client is told of them in questions, which say so too.
    fn labelled(&self, outcome: Outcome) -> Outcome {
        match (outcome, self.reply.owner()) {
            (Outcome::Error(Failure::Upstream(error)), Some(owner)) if !self.asked.revision.is_modern() => {
                Outcome::Error(Failure::Upstream(self.edge.label.put_pages(owner, error)))
            }
            (outcome, _) => outcome,
        }
    }

    fn answer(&self, outcome: Outcome, from: Revision) -> Answer {
        self.asked.answer(outcome, from, self.reply.owner(), &self.edge.identity)
    }
}

impl Turns for Running {
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Turn> {
        if let Some(open) = &self.open
            && open.poll_cancelled(cx).is_ready()
        {
            let line = Line { reply: &mut self.reply, asked: &self.asked, edge: &self.edge };
            return self.dialogue.poll_cancel(line, cx).map(|left| left.map_or(Turn::Cancelled, Turn::Event));
        }
        loop {
            let line = Line { reply: &mut self.reply, asked: &self.asked, edge: &self.edge };
            if let Poll::Ready(turn) = self.dialogue.poll(line, cx) {
                return Poll::Ready(turn);
            }
            if self.reply.has_ended() {
                return Poll::Pending;
            }
            let Poll::Ready(step) = self.reply.poll_step(cx) else { return self.poll_ending(cx) };
            let turn = match step {
                Step::Event(event) => self.event(event).map(Turn::Event),
                Step::Done(outcome) => self.outcome(outcome),
            };
            if let Some(turn) = turn {
                return Poll::Ready(turn);
            }
        }
    }
}

impl Cut for Running {
    fn cut(&mut self) -> Option<Answer> {
        let is_withdrawn = |open: &OpenCall| open.poll_cancelled(&Context::from_waker(Waker::noop())).is_ready();
        if self.open.as_ref().is_some_and(is_withdrawn) {
            return None;
        }
        let whose = self.reply.owner().map(|owner| format!(" of upstream `{owner}`")).unwrap_or_default();
        let mut why = format!("the gateway ended before `{}`{whose} was answered", self.asked.method.as_str());
        if self.asked.method.is_long() {
            why.push_str("; whether it ran is not known, so look before trying again");
        }
        let upstream = self.reply.owner().cloned();
        let refusal = Refusal { upstream, ..Refusal::new(Reason::OutcomeUnknown, why) };
        Some(self.answer(refusal.into(), self.asked.revision))
    }
}
