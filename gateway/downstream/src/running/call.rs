//! A call under way: its reply read step by step into frames for the client.

use crate::call::Call;
use crate::call::refusal::{Reason, Refusal};
use crate::call::reply::{Event, Failure, Outcome, Reply, Step};
use crate::call::share::Abandoned;
use crate::edge::open_calls::OpenCall;
use crate::edge::{CallContext, Edge};
use crate::memory::account::{Hold, Kind};
use crate::memory::budget::{Charge, UNCOUNTED};
use crate::protocol::frame::Method;
use crate::protocol::revision::Revision;
use crate::questions::{Dialogue, ParkQuestions};
use crate::response::steps::{Cut, Lose, Lost, StepQueue, Turn};
use crate::response::{EncodedResponse, ResponseEncoder};
use crate::runtime::Tasks;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

/// A call under way. Dropping it cancels the call, unless it has ended. It goes through many hands until it is waited for, and is
/// large: they hand on its box.
pub(crate) struct RunningCall(Box<Underway>);

struct Underway {
    reply: Reply,
    asked: ResponseEncoder,
    /// Where a cancellation finds it; `None` where closing the stream is the only way.
    open: Option<OpenCall>,
    edge: Arc<Edge>,
    /// When a listen call is ended in good order, from our side.
    ending: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// What becomes of the questions that come up.
    dialogue: Dialogue,
    /// What can take the memory of a large request away.
    held: Option<Hold>,
}

impl RunningCall {
    pub(crate) fn new(edge: &Arc<Edge>, asked: ResponseEncoder, reply: Reply, open: Option<OpenCall>) -> Self {
        let (edge, dialogue) = (edge.clone(), Dialogue::Mute);
        Self(Box::new(Underway { reply, asked, open, edge, ending: None, dialogue, held: None }))
    }

    /// A call whose client can be asked.
    pub(crate) fn asking(mut self, dialogue: Dialogue) -> Self {
        self.0.dialogue = dialogue;
        self
    }

    /// A stateless client's call.
    pub(crate) fn stateless(edge: &Arc<Edge>, asked: ResponseEncoder, call: Call, open: Option<OpenCall>) -> Self {
        if !call.method.is_long() {
            return Self::new(edge, asked, edge.call(call), open);
        }
        let dialogue = ParkQuestions::new(&call);
        Self::made(edge, asked, call, open, dialogue)
    }

    /// A call whose client is asked in this way; the call may differ from what the client wrote.
    pub(crate) fn made(
        edge: &Arc<Edge>,
        asked: ResponseEncoder,
        call: Call,
        open: Option<OpenCall>,
        dialogue: ParkQuestions,
    ) -> Self {
        Self::resumed(edge, asked, edge.call(call), open, dialogue)
    }

    /// A call that is under way already.
    pub(crate) fn resumed(
        edge: &Arc<Edge>,
        asked: ResponseEncoder,
        reply: Reply,
        open: Option<OpenCall>,
        dialogue: ParkQuestions,
    ) -> Self {
        Self::new(edge, asked, reply, open).asking(Dialogue::Stateless(dialogue))
    }

    /// One that ends with a refusal at once.
    pub(crate) fn refused(edge: &Arc<Edge>, asked: ResponseEncoder, refusal: Refusal) -> Self {
        let reply = Reply::refuse(asked.revision, refusal);
        Self::new(edge, asked, reply, None)
    }

    /// A listen call, which never ends by itself, is ended in good order when `level` is told to end.
    pub(crate) fn listening_until(mut self, level: &Tasks) -> Self {
        if self.0.asked.method == Method::Listen {
            let level = level.clone();
            self.0.ending = Some(Box::pin(async move { level.ending().await }));
        }
        self
    }

    /// The client's request.
    pub(crate) fn asked(&self) -> &ResponseEncoder {
        &self.0.asked
    }

    /// It can be ended for the memory that its request takes.
    pub(crate) fn hold(&mut self, held: Option<Hold>) {
        if held.is_some() {
            self.0.held = held;
        }
    }
}

impl Underway {
    fn lost(&mut self, lost: Lost) -> EncodedResponse {
        let whose = self.reply.owner().map(|owner| format!(" of upstream `{owner}`")).unwrap_or_default();
        let method = self.asked.method.as_str();
        let why = format!(
            "the request `{method}`{whose} was aborted: {}; it may or may not have run: check before retrying",
            lost.why()
        );
        let upstream = self.reply.owner().cloned();
        let refusal = Refusal { upstream, ..Refusal::new(Reason::OutcomeUnknown, why) };
        let answer = self.answer(refusal.clone().into(), self.asked.revision);
        self.reply = Reply::refuse(self.asked.revision, refusal);
        answer
    }

    fn poll_ending(&mut self, cx: &mut Context<'_>) -> Poll<Turn> {
        let Some(ending) = &mut self.ending else { return Poll::Pending };
        ready!(ending.as_mut().poll(cx));
        Poll::Ready(Turn::End(self.asked.listen_end(&self.edge.identity)))
    }

    fn event(&mut self, event: Event) -> Option<Vec<u8>> {
        match event {
            Event::Ask(ask) => {
                let line =
                    CallContext { reply: &mut self.reply, asked: &self.asked, edge: &self.edge, held: &mut self.held };
                self.dialogue.ask(ask, line);
                None
            }
            event => self.asked.event(event, self.reply.revision()),
        }
    }

    /// The end; nothing where the client is to be asked first.
    fn outcome(&mut self, outcome: Outcome) -> Option<Turn> {
        let outcome = self.labelled(outcome);
        let line = CallContext { reply: &mut self.reply, asked: &self.asked, edge: &self.edge, held: &mut self.held };
        let (outcome, from) = self.dialogue.outcome(outcome, line)?;
        Some(Turn::End(self.counted(outcome, from)))
    }

    /// The answer, where there is memory for it.
    fn counted(&self, outcome: Outcome, from: Revision) -> EncodedResponse {
        let bytes = outcome.bytes();
        let most = self.asked.composed_max(&outcome, from);
        let has_run = self.asked.method.is_long() && matches!(outcome, Outcome::Complete(_));
        let charge = match self.reply.owner().filter(|_| bytes > UNCOUNTED) {
            // One small answer at a time is counted with its connection.
            None if most <= UNCOUNTED => Ok(Charge::default()),
            Some(upstream) => self.edge.budget.of_upstream(upstream).charge(Kind::Answer, most),
            None => self.edge.budget.charge(Kind::Answer, most),
        };
        match charge {
            Ok(mut charge) => {
                let answer = self.answer(outcome, from);
                charge.shrink(answer.frame.as_ref().len());
                EncodedResponse { charge, ..answer }
            }
            Err(spent) => {
                let upstream = self.reply.owner().cloned();
                let whose = self.reply.owner().map(|owner| format!(" of upstream `{owner}`")).unwrap_or_default();
                let (what, ran) = (self.asked.what(), if has_run { " has run and" } else { "" });
                let why =
                    format!("{what}{whose}{ran} was answered with {bytes} bytes, and the answer was dropped: {spent}");
                let refusal = Refusal { upstream, ..Refusal::new(Reason::OutcomeUnknown, why) };
                self.answer(refusal.into(), self.asked.revision)
            }
        }
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

    fn answer(&self, outcome: Outcome, from: Revision) -> EncodedResponse {
        self.asked.answer(outcome, from, self.reply.owner(), &self.edge.identity)
    }

    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Turn> {
        if let Some(open) = &self.open
            && open.poll_cancelled(cx).is_ready()
        {
            self.reply.withdraw();
            let line =
                CallContext { reply: &mut self.reply, asked: &self.asked, edge: &self.edge, held: &mut self.held };
            return self.dialogue.poll_cancel(line, cx).map(|left| left.map_or(Turn::Cancelled, Turn::Event));
        }
        if self.held.as_ref().is_some_and(|held| held.poll_lost(cx).is_ready()) {
            return Poll::Ready(Turn::End(self.lost(Lost::Memory)));
        }
        loop {
            let line =
                CallContext { reply: &mut self.reply, asked: &self.asked, edge: &self.edge, held: &mut self.held };
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

    fn cut(&mut self) -> Option<EncodedResponse> {
        let is_withdrawn = |open: &OpenCall| open.poll_cancelled(&Context::from_waker(Waker::noop())).is_ready();
        if self.open.as_ref().is_some_and(is_withdrawn) {
            return None;
        }
        let whose = self.reply.owner().map(|owner| format!(" of upstream `{owner}`")).unwrap_or_default();
        let mut why = format!("the gateway shut down before `{}`{whose} was answered", self.asked.method.as_str());
        if self.asked.method.is_long() {
            why.push_str("; it may or may not have run: check before retrying");
        }
        let upstream = self.reply.owner().cloned();
        let refusal = Refusal { upstream, ..Refusal::new(Reason::OutcomeUnknown, why) };
        Some(self.answer(refusal.into(), self.asked.revision))
    }
}

impl StepQueue for RunningCall {
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Turn> {
        let turn = match self.0.poll_turn(cx) {
            // Whoever polls it is woken for this.
            Poll::Pending if self.0.edge.is_over() => Poll::Ready(self.0.cut().map_or(Turn::Cancelled, Turn::End)),
            turn => turn,
        };
        if matches!(turn, Poll::Ready(Turn::End(_))) {
            // Before the answer is written: its client may use the id again as soon as it has that.
            self.0.open = None;
        }
        turn
    }
}

impl Cut for RunningCall {
    fn cut(&mut self) -> Option<EncodedResponse> {
        self.0.cut()
    }
}

impl Lose for RunningCall {
    fn lose(&mut self, why: Lost) -> Option<EncodedResponse> {
        Some(self.0.lost(why))
    }

    fn abandon(&mut self, call: &Arc<Abandoned>) {
        self.0.reply.abandon(call);
    }
}
