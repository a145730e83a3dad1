//! The questions of a handshake client's call: put to the client on the call's own stream, and withdrawn there.

use super::park::turned_away;
use super::rounds::{Next, Rounds};
use crate::call::Call;
use crate::call::refusal::{Reason, Refusal};
use crate::call::reply::ask::Ask;
use crate::call::reply::{Outcome, Reply};
use crate::call::share::SharePermit;
use crate::edge::{CallContext, Edge};
use crate::parking::FULL;
use crate::protocol::revision::Revision;
use crate::protocol::value::Object;
use crate::response::EncodedResponse;
use crate::response::steps::Turn;
use crate::session::Put;
use crate::session::client::Session;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Sleep, sleep};

/// How long the stream of a withdrawn call waits for the withdrawals of its questions.
const PARTING: Duration = Duration::from_secs(1);

/// What a handshake client's call has open at its client.
pub(crate) struct LiveQuestions {
    session: Arc<Session>,
    /// Numbers of questions on the call's stream; some of them may have been answered.
    open: Vec<u64>,
    /// Frames that are due on the stream, in their order.
    due: VecDeque<Vec<u8>>,
    /// The call's end, once it is known; what is due goes first.
    end: Option<EncodedResponse>,
    rounds: Rounds,
    /// Held while a question is open.
    waiting: Option<Waiting>,
    /// The client has withdrawn the call: so long whoever asked has to withdraw its questions.
    parting: Option<Pin<Box<Sleep>>>,
}

/// What is held while the client is asked.
struct Waiting {
    _place: SharePermit,
    /// Resolves when the face is told to end: nobody is waited for then.
    ending: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl LiveQuestions {
    /// Of a call, as it was made.
    pub(crate) fn new(session: &Arc<Session>, call: &Call) -> Self {
        Self {
            session: session.clone(),
            open: Vec::new(),
            due: VecDeque::new(),
            end: None,
            rounds: Rounds::new(call),
            waiting: None,
            parting: None,
        }
    }

    /// Takes a live question. One that cannot be put is dropped: whoever asks hears that there is no answer.
    #[allow(clippy::boxed_local, reason = "as events bear it, which are small for the sake of all others")]
    pub(crate) fn ask(&mut self, ask: Box<Ask>, line: &CallContext<'_>) {
        if line.asked.mute.is_some() || line.edge.tasks.is_ending() {
            return;
        }
        if !self.wait(line.edge) {
            line.edge.refusals.turn_away("questions", &turned_away(&ask.upstream));
            return ask.answer.refuse(ask.revision, FULL);
        }
        if let Ok(Put { id, frame, .. }) = self.session.outgoing.put(*ask) {
            self.open.push(id);
            self.due.push_back(frame);
        }
    }

    /// What is due: questions, withdrawals, and the end where the call ended here. May put another reply in place.
    pub(crate) fn poll(&mut self, line: &mut CallContext<'_>, cx: &mut Context<'_>) -> Poll<Turn> {
        if self.is_quiet() {
            return Poll::Pending;
        }
        self.look_around(line, cx);
        if self.end.is_none()
            && let Poll::Ready(next) = self.rounds.poll(cx)
        {
            match next {
                Next::Again(call) => *line.reply = line.edge.call(*call),
                Next::Over(why) => self.end = Some(line.asked.cannot(&why)),
            }
        }
        if let Some(frame) = self.next_frame(cx) {
            return Poll::Ready(Turn::Event(frame));
        }
        self.end.take().map_or(Poll::Pending, |end| Poll::Ready(Turn::End(end)))
    }

    /// What the client is answered; `None` where it is asked first, or told of something.
    pub(crate) fn outcome(&mut self, outcome: Outcome, line: &CallContext<'_>) -> Option<(Outcome, Revision)> {
        let revision = line.reply.revision();
        if let Outcome::InputRequired(result) = &outcome {
            if let Err(why) = self.begin(result, line) {
                self.end = Some(line.asked.cannot(&why));
            }
            return None;
        }
        if let Outcome::Complete(result) = &outcome
            && let Some((task, token)) = line.asked.task_token(result)
        {
            // It stays in use until the task ends.
            self.session.outgoing.keep_token(task, &token);
        }
        // What is withdrawn already is withdrawn on the call's own stream, the only one that a client may read. Other questions of
        // the upstream's live beyond the call; their withdrawal comes among the notices.
        self.session.outgoing.withdraw_closed(&mut self.open, &mut self.due);
        self.leave();
        self.due.extend(self.rounds.farewell());
        if self.due.is_empty() {
            return Some((outcome, revision));
        }
        self.end = Some(line.asked.answer(outcome, revision, line.reply.owner(), &line.edge.identity));
        None
    }

    /// The client has withdrawn the call: what is left to be said of its questions; nothing once nothing is.
    pub(crate) fn poll_cancel(&mut self, line: &mut CallContext<'_>, cx: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        if self.is_quiet() {
            return Poll::Ready(None);
        }
        let parting = match &mut self.parting {
            Some(parting) => parting,
            first => {
                // Dropped first: whoever asked withdraws with it, though not in the same moment.
                *line.reply =
                    Reply::refuse(line.asked.revision, Refusal::new(Reason::Cancelled, "the client withdrew the call"));
                self.rounds.give_up("");
                self.end = None;
                first.insert(Box::pin(sleep(PARTING)))
            }
        };
        let is_over = parting.as_mut().poll(cx).is_ready();
        if let Some(frame) = self.next_frame(cx) {
            return Poll::Ready(Some(frame));
        }
        if self.open.is_empty() || is_over {
            // What another call of the session keeps open stays with the session.
            self.leave();
            return Poll::Ready(None);
        }
        Poll::Pending
    }

    /// Whether nothing was asked, or all of it is over.
    fn is_quiet(&self) -> bool {
        self.open.is_empty() && self.due.is_empty() && self.end.is_none() && self.rounds.is_idle()
    }

    /// Gives everything up when the face is told to end, so that the call ends with an answer and is not cut without one.
    fn look_around(&mut self, line: &CallContext<'_>, cx: &mut Context<'_>) {
        let Some(waiting) = &mut self.waiting else { return };
        if waiting.ending.as_mut().poll(cx).is_pending() {
            return;
        }
        self.waiting = None;
        self.session.outgoing.withdraw(&mut self.open, &mut self.due);
        if let Some(why) = self.rounds.give_up("and the gateway is shutting down") {
            self.end = Some(line.asked.cannot(&why));
        }
    }

    fn next_frame(&mut self, cx: &mut Context<'_>) -> Option<Vec<u8>> {
        if !self.open.is_empty() {
            self.session.outgoing.poll_withdrawn(&mut self.open, &mut self.due, cx);
        }
        if self.open.is_empty() {
            self.waiting = None;
        }
        self.due.pop_front()
    }

    /// Puts a stateless upstream's questions, all of them or none; says why not.
    fn begin(&mut self, result: &Object, line: &CallContext<'_>) -> Result<(), String> {
        let asks = self.rounds.begin(result, line)?;
        if asks.is_empty() {
            return Ok(());
        }
        if line.edge.tasks.is_ending() {
            return Err(self.rounds.give_up("and the gateway is shutting down").unwrap_or_default());
        }
        if !self.wait(line.edge) {
            line.edge.refusals.turn_away("questions", &"too many calls wait for input already (`questions.max_open`)");
            let why = "and too many calls are already waiting for answers (`questions.max_open` and `questions.max_per_principal`)";
            return Err(self.rounds.give_up(why).unwrap_or_default());
        }
        let (mut frames, mut unused) = (Vec::new(), VecDeque::new());
        for (at, ask) in asks.into_iter().enumerate() {
            match self.session.outgoing.put(ask) {
                Ok(put) => {
                    self.open.push(put.id);
                    frames.push(put.frame);
                    self.rounds.was_put(at, put.visit);
                }
                Err(unput) => {
                    // Nothing of it was sent.
                    self.session.outgoing.withdraw(&mut self.open, &mut unused);
                    return Err(self.rounds.give_up(unput.why()).unwrap_or_default());
                }
            }
        }
        self.due.extend(frames);
        Ok(())
    }

    /// Counts the call among those that wait; whether there was room.
    fn wait(&mut self, edge: &Arc<Edge>) -> bool {
        if self.waiting.is_none() {
            let Some(place) = edge.quota.enter(&self.session.caller().share()) else { return false };
            let edge = edge.clone();
            let ending = Box::pin(async move { edge.tasks.ending().await });
            self.waiting = Some(Waiting { _place: place, ending });
        }
        true
    }

    fn leave(&mut self) {
        self.session.outgoing.leave(&std::mem::take(&mut self.open));
        self.waiting = None;
    }
}

impl Drop for LiveQuestions {
    fn drop(&mut self) {
        self.leave();
    }
}
