//! What a call's reply is read from: the frames of its exchange, within its time limits.

use super::chunks::{Fold, Folding, SILENCE_MAX};
use super::dialect;
use super::gate::{Retired, Sending};
use super::judge;
use super::limits::Limits;
use super::link::{Arrival, Lost};
use super::standing::Standing;
use super::tasks::Driven;
use super::turn::{For, Sent, Told, Turn, Wait};
use super::{task_form, words};
use crate::call::{Call, Event, Outcome, Refusal, Source, Step};
use crate::protocol::capability::Capabilities;
use crate::protocol::error::{
    HEADER_MISMATCH, MISSING_CAPABILITY, RpcError, UNSUPPORTED_REVISION, URL_ELICITATION_REQUIRED,
};
use crate::protocol::frame::Body;
use crate::protocol::{Method, Revision};
use bytes::Bytes;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::Instant;

/// A call on its way.
pub(crate) struct CallSource {
    standing: Arc<Standing>,
    call: Call,
    stage: Stage,
    limits: Limits,
    revision: Revision,
    /// When it was sent.
    sent: Instant,
    upstream_time: Duration,
    /// Whether it was sent a second time, because the first proved not to have run.
    is_second: bool,
    /// What its upstream last told of its progress, raw.
    progressed: Option<Bytes>,
}

enum Stage {
    /// It waits for its turn, nothing sent; for what, as far as that was told.
    Waiting(Wait, For),
    /// It waits for the tools to be read again, since its headers were refused.
    Rereading(Pin<Box<dyn Future<Output = ()> + Send>>),
    /// It was sent.
    Sent(Sent),
    /// It runs as a task only, of which its caller knows nothing.
    Driven(Pin<Box<Driven>>),
    /// It was answered, and its result comes in chunks.
    Folding(Box<Folding>),
    Over,
}

impl CallSource {
    /// A call that was sent.
    pub(crate) fn sent(standing: &Arc<Standing>, call: Call, sent: Sent) -> Self {
        let now = Instant::now();
        let mut limits = Limits::new(standing, &call);
        limits.begin(now);
        let revision = sent.peer.revision();
        Self::new(standing, call, Stage::Sent(sent), limits, revision, now)
    }

    /// A call that waits for its turn.
    pub(crate) fn waiting(standing: &Arc<Standing>, call: Call, wait: Wait) -> Self {
        let now = Instant::now();
        let mut limits = Limits::new(standing, &call);
        limits.begin(now);
        let revision = call.revision();
        Self::new(standing, call, Stage::Waiting(wait, For::Start), limits, revision, now)
    }

    fn new(
        standing: &Arc<Standing>,
        call: Call,
        stage: Stage,
        limits: Limits,
        revision: Revision,
        sent: Instant,
    ) -> Self {
        standing.metrics.inflight.increment(1);
        standing.traffic.began();
        call.log_level.into_iter().for_each(|level| standing.levels.hold(level));
        Self {
            standing: standing.clone(),
            call,
            stage,
            limits,
            revision,
            sent,
            upstream_time: Duration::ZERO,
            is_second: false,
            progressed: None,
        }
    }

    fn done(&mut self, outcome: impl Into<Outcome>) -> Poll<Step> {
        if let Stage::Sent(_) | Stage::Folding(_) = self.stage {
            self.upstream_time = self.sent.elapsed();
        }
        self.leave_queue();
        self.stage = Stage::Over;
        Poll::Ready(Step::Done(outcome.into()))
    }

    /// Where it waits for its turn, it does no longer.
    fn leave_queue(&self) {
        if let Stage::Waiting(wait, _) = &self.stage {
            wait.close();
            self.standing.gate.forget();
        }
    }

    fn refuse(&mut self, refusal: Refusal) -> Poll<Step> {
        self.done(refusal)
    }

    /// Its turn has come.
    fn turn(&mut self, turn: Turn) -> Option<Poll<Step>> {
        match turn {
            Ok(sent) => {
                self.revision = sent.peer.revision();
                self.sent = Instant::now();
                self.limits.begin(self.sent);
                self.stage = Stage::Sent(sent);
                None
            }
            Err(lost) => {
                let refusal = words::lost(&self.standing.name, &self.call, &lost);
                Some(self.refuse(refusal))
            }
        }
    }

    /// A frame of its exchange.
    fn arrived(&mut self, arrival: Arrival) -> Option<Poll<Step>> {
        match arrival {
            Arrival::Progress(params) => {
                self.limits.extend(Instant::now());
                self.progressed = params.find("progress").map(|raw| params.raw().slice_ref(raw));
                Some(Poll::Ready(Step::Event(Event::Progress(params))))
            }
            Arrival::Log(level, params) => Some(Poll::Ready(Step::Event(Event::Log(level, params)))),
            Arrival::Ask(ask) => {
                self.limits.stop(Instant::now());
                Some(Poll::Ready(Step::Event(Event::Ask(ask))))
            }
            Arrival::Acknowledged(_) | Arrival::Task(_) => None,
            Arrival::Response(body) => {
                if let Some(next) = self.refused_unrun(&body) {
                    return next;
                }
                self.note_pages(&body);
                if let Some(folding) = self.announced(&body) {
                    self.limits.tighten(SILENCE_MAX, Instant::now());
                    self.stage = Stage::Folding(Box::new(folding));
                    return None;
                }
                let outcome = judge::outcome(&self.standing.name, &self.call, body, self.revision);
                let outcome = self.in_content(outcome);
                Some(self.done(outcome))
            }
            Arrival::Lost(lost) => self.lost(lost),
        }
    }

    /// A session that must open pages first will hear when they were seen to.
    fn note_pages(&self, body: &Body) {
        let (Body::Error(raw), Some(tenant)) = (body, &self.call.caller.tenant) else { return };
        let error = RpcError::from_raw(raw.clone());
        if error.code() == Some(URL_ELICITATION_REQUIRED) {
            self.standing.pages.required(&error, tenant);
        }
    }

    /// Where an answer says that the result comes in chunks.
    fn announced(&self, body: &Body) -> Option<Folding> {
        let Stage::Sent(Sent { peer, .. }) = &self.stage else { return None };
        if peer.revision().is_modern() || self.call.method != Method::ToolsCall {
            return None;
        }
        let link = peer.link.clone();
        let begun_at = self.progressed.as_ref().and_then(|raw| std::str::from_utf8(raw).ok()?.parse().ok());
        let begun_at = begun_at.map_or(0, |reached: f64| reached.max(0.0).ceil() as u64);
        self.standing.chunks.announced(body, begun_at, async move { link.closed().await })
    }

    /// What comes of reading the chunks.
    fn folded(&mut self, fold: Fold) -> Poll<Step> {
        match fold {
            Fold::Progress(params) => {
                self.limits.extend(Instant::now());
                Poll::Ready(Step::Event(Event::Progress(params)))
            }
            Fold::Whole(result) => self.done(Outcome::Complete(result)),
            Fold::Broken(why) => {
                let refusal = words::lost(&self.standing.name, &self.call, &Lost::Unknown(why));
                self.refuse(refusal)
            }
        }
    }

    /// The outcome in the words of a revision, where it came in a dialect.
    fn in_content(&self, outcome: Outcome) -> Outcome {
        match (outcome, &self.stage) {
            (Outcome::Complete(result), Stage::Sent(sent))
                if sent.peer.offer.is_dialect && self.call.method == Method::ToolsCall =>
            {
                Outcome::Complete(dialect::with_content(result))
            }
            (outcome, _) => outcome,
        }
    }

    /// Where a stateless upstream has proved that the call did not run: it is on its way again, once.
    fn refused_unrun(&mut self, body: &Body) -> Option<Option<Poll<Step>>> {
        let Body::Error(raw) = body else { return None };
        if self.is_second || !self.revision.is_modern() {
            return None;
        }
        let error = RpcError::from_raw(raw.clone());
        match error.code() {
            Some(MISSING_CAPABILITY) if self.could_be_driven() && task_form::wants_tasks(&error) => {
                // It counts itself.
                self.standing.metrics.inflight.decrement(1);
                self.standing.traffic.ended();
                self.stage = Stage::Driven(Box::pin(Driven::declared(&self.standing, &self.call, self.revision)));
                Some(None)
            }
            Some(HEADER_MISMATCH) => {
                let standing = self.standing.clone();
                self.is_second = true;
                self.stage = Stage::Rereading(Box::pin(async move { standing.read_again().await }));
                Some(None)
            }
            Some(UNSUPPORTED_REVISION) => {
                let Stage::Sent(sent) = &self.stage else { return None };
                self.standing.gate.retire(&sent.peer, Retired::Revision("it no longer speaks the revision".into()));
                Some(self.again())
            }
            _ => None,
        }
    }

    /// Whether it may be called as a task on behalf of a caller that knows none.
    fn could_be_driven(&self) -> bool {
        self.call.method == Method::ToolsCall && !self.call.caller.can().has(Capabilities::TASKS)
    }

    /// There is no answer.
    fn lost(&mut self, lost: Lost) -> Option<Poll<Step>> {
        if let Stage::Sent(Sent { peer, .. }) = &self.stage {
            self.standing.noticed(peer, &lost);
            if matches!(lost, Lost::Session(_)) && !self.is_second {
                return self.again();
            }
        }
        let refusal = words::lost(&self.standing.name, &self.call, &lost);
        Some(self.refuse(refusal))
    }

    /// Sends it a second time, once: the first did not run.
    fn again(&mut self) -> Option<Poll<Step>> {
        self.is_second = true;
        match self.standing.admit(&self.call) {
            Ok(Sending::Sent(sent)) => self.turn(Ok(sent)),
            Ok(Sending::Waiting(wait)) => {
                self.limits.begin(Instant::now());
                self.stage = Stage::Waiting(wait, For::Start);
                None
            }
            Err(refusal) => Some(self.refuse(refusal)),
        }
    }

    fn expired(&mut self) -> Poll<Step> {
        let refusal = match &self.stage {
            Stage::Folding(_) if self.limits.limit().key.is_empty() => {
                let why = format!("nothing came of its result for {} s", self.limits.limit().time.as_secs_f32());
                words::lost(&self.standing.name, &self.call, &Lost::Unknown(why.into()))
            }
            Stage::Sent(_) | Stage::Folding(_) => words::timeout(&self.standing.name, &self.call, self.limits.limit()),
            Stage::Waiting(_, For::Place) => words::waited(&self.standing.name, &self.call, self.limits.limit()),
            // The upstream is there, and its caller needs a session of another kind.
            Stage::Waiting(..) if self.standing.gate.peer().is_some() => {
                let cause =
                    "a session for clients that can be asked what this one can was not opened in time; try again";
                words::unavailable(&self.standing.name, &self.call, cause, None)
            }
            _ => self.standing.unavailable(&self.call, &self.standing.cause()),
        };
        // Dropping the exchange tells the upstream.
        self.refuse(refusal)
    }
}

impl Source for CallSource {
    fn poll_step(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Step> {
        let this = &mut *self;
        loop {
            let next = match &mut this.stage {
                Stage::Sent(sent) => match sent.exchange.poll(cx) {
                    Poll::Ready(arrival) => this.arrived(arrival),
                    Poll::Pending => {
                        match sent.exchange.asked_since() {
                            // Its time stands still; the last answer wakes it.
                            Some(since) => {
                                this.limits.stop(since);
                                return Poll::Pending;
                            }
                            None => this.limits.go_on(&this.standing.metrics),
                        }
                        ready!(this.limits.poll(cx));
                        Some(this.expired())
                    }
                },
                Stage::Waiting(wait, wait_for) => match wait.poll(cx) {
                    Poll::Ready(Told::Waits(what, since)) => {
                        *wait_for = what;
                        this.limits.wait(what, since);
                        None
                    }
                    Poll::Ready(Told::Turn(turn)) => this.turn(turn),
                    Poll::Ready(Told::Never) => {
                        let refusal = this.standing.unavailable(&this.call, &this.standing.cause());
                        Some(this.refuse(refusal))
                    }
                    Poll::Pending => {
                        ready!(this.limits.poll(cx));
                        Some(this.expired())
                    }
                },
                Stage::Folding(folding) => match folding.poll(cx) {
                    Poll::Ready(fold) => Some(this.folded(fold)),
                    Poll::Pending => {
                        ready!(this.limits.poll(cx));
                        Some(this.expired())
                    }
                },
                Stage::Rereading(reread) => match reread.as_mut().poll(cx) {
                    Poll::Ready(()) => this.again(),
                    Poll::Pending => {
                        ready!(this.limits.poll(cx));
                        Some(this.expired())
                    }
                },
                Stage::Driven(driven) => return driven.as_mut().poll_step(cx),
                Stage::Over => Some(this.expired()),
            };
            if let Some(step) = next {
                return step;
            }
        }
    }

    fn revision(&self) -> Revision {
        self.revision
    }

    fn upstream_time(&self) -> Duration {
        self.upstream_time
    }
}

impl Drop for CallSource {
    fn drop(&mut self) {
        if !matches!(self.stage, Stage::Driven(_)) {
            self.standing.metrics.inflight.decrement(1);
            self.standing.traffic.ended();
        }
        self.leave_queue();
        self.call.log_level.into_iter().for_each(|level| self.standing.levels.release(level));
    }
}
