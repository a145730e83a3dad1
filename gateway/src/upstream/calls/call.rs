//! What a call's reply is read from: the frames of its exchange, within its time limits.

use super::admit::{admit, under_way};
use super::attempts::{self, Stage};
use super::child_breaker::{self, Admitted, Probe};
use super::deadlines::Deadlines;
use super::failure::{CallFailure, fail, turned_away, unavailable};
use super::outcome;
use super::sessions::own;
use crate::call::Call;
use crate::call::caller::trace::Attempt;
use crate::call::reply::{Event, Outcome, Source, Step};
use crate::health::{Cause, CauseCode};
use crate::protocol::frame::message::Body;
use crate::protocol::frame::rpc_error::{HEADER_MISMATCH, MISSING_CAPABILITY, RpcError, UNSUPPORTED_REVISION};
use crate::protocol::payload::task;
use crate::protocol::revision::Revision;
use crate::transport::exchange::Lost;
use crate::transport::exchange::mailbox::Arrival;
use crate::upstream::instance::admission::gate::{Retired, Sending};
use crate::upstream::instance::admission::waiter::{QueueUpdate, Sent, Turn, WaitingFor};
use crate::upstream::instance::chunks::{Fold, SILENCE_MAX};
use crate::upstream::instance::inventory::schedule::ListKinds;
use crate::upstream::instance::{Instance, masked};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::Instant;

/// A call on its way.
pub(crate) struct CallSource {
    instance: Arc<Instance>,
    call: Call,
    stage: Stage,
    limits: Deadlines,
    revision: Revision,
    /// When it was sent; while it waits for its turn, when that began.
    sent: Instant,
    upstream_time: Duration,
    queue_time: Duration,
    /// Whether it was sent a second time, because the first proved not to have run.
    is_second: bool,
    /// What its upstream last told of its progress.
    progressed: Option<f64>,
    /// Whether somebody drives it as a task where its upstream wants that.
    may_be_task: bool,
    wants_task: bool,
    /// Whether it is counted as a call under way.
    is_counted: bool,
    /// Where it is a part of a trace: the request that is under way.
    attempt: Option<Attempt>,
    /// Where it tries whether a child is well again.
    probe: Option<Probe>,
}

impl CallSource {
    /// A call that was sent, or waits for its turn; it may be handed over to be driven as a task, or not. Inlined: it is large, and is
    /// made where it stays.
    #[inline(always)]
    pub(crate) fn new(instance: &Arc<Instance>, call: Call, admitted: Admitted, may_be_task: bool) -> Self {
        let (sending, probe) = admitted;
        let (stage, revision, attempt) = match sending {
            Sending::Sent(mut sent) => {
                let revision = sent.peer.revision();
                outcome::count_bridged(&instance.status.metrics, &call, revision);
                let attempt = under_way(instance, &mut sent);
                (Stage::Sent(sent), revision, attempt)
            }
            Sending::Waiting(wait) => (Stage::Waiting(wait, WaitingFor::Start), call.revision(), None),
        };
        let sent = Instant::now();
        let mut limits = Deadlines::new(&instance.config, &instance.admission.timers, &call);
        limits.begin(sent);
        instance.status.metrics.inflight.increment(1);
        instance.admission.traffic.began();
        instance.retries.called();
        call.log_level.into_iter().for_each(|level| instance.wanted.levels.hold(level));
        Self {
            instance: instance.clone(),
            call,
            stage,
            limits,
            revision,
            sent,
            upstream_time: Duration::ZERO,
            queue_time: Duration::ZERO,
            is_second: false,
            progressed: None,
            may_be_task,
            wants_task: false,
            is_counted: true,
            attempt,
            probe,
        }
    }

    fn done(&mut self, outcome: impl Into<Outcome>) -> Poll<Step> {
        let outcome = outcome.into();
        match self.stage {
            Stage::Sent(_) | Stage::Folding(_) => {
                self.upstream_time = self.sent.elapsed();
                attempts::ended(&self.instance, &self.call, (outcome.place(), self.upstream_time));
            }
            Stage::Waiting(..) => self.queue_time += self.sent.elapsed(),
            Stage::Rereading(_) | Stage::Over => {}
        }
        self.leave_queue();
        self.stage = Stage::Over;
        self.attempt.take().into_iter().for_each(|attempt| attempt.end(&outcome, self.revision));
        Poll::Ready(Step::Done(outcome))
    }

    /// Where it waits for its turn, it does no longer.
    fn leave_queue(&self) {
        if let Stage::Waiting(wait, _) = &self.stage {
            wait.close();
            self.instance.admission.gate.forget();
        }
    }

    fn fail(&mut self, failure: CallFailure<'_>) -> Poll<Step> {
        let refusal = fail(&self.instance.config, &self.instance.status, &self.call, failure);
        self.done(refusal)
    }

    /// Its turn has come.
    fn turn(&mut self, turn: Turn) -> Option<Poll<Step>> {
        match turn {
            Ok(mut sent) => {
                self.revision = sent.peer.revision();
                self.attempt = under_way(&self.instance, &mut sent);
                if !self.is_second {
                    outcome::count_bridged(&self.instance.status.metrics, &self.call, self.revision);
                }
                let before = std::mem::replace(&mut self.sent, Instant::now());
                if let Stage::Waiting(..) = self.stage {
                    self.queue_time += self.sent - before;
                }
                self.limits.begin(self.sent);
                self.stage = Stage::Sent(sent);
                None
            }
            Err(lost) => {
                let Instance { config, status, admission, .. } = &*self.instance;
                let refusal = turned_away((config, status, &admission.demand), &self.call, &lost);
                Some(self.done(refusal))
            }
        }
    }

    /// A frame of its exchange.
    fn arrived(&mut self, arrival: Arrival) -> Option<Poll<Step>> {
        match arrival {
            Arrival::Progress(params) => {
                self.limits.extend(Instant::now());
                self.progressed = params.find("progress").and_then(|raw| std::str::from_utf8(raw).ok()?.parse().ok());
                Some(Poll::Ready(Step::Event(Event::Progress(masked::notification(params)))))
            }
            Arrival::Log(level, params) => {
                Some(Poll::Ready(Step::Event(Event::Log(level, masked::notification(params)))))
            }
            Arrival::Ask(ask) => {
                self.limits.stop(Instant::now());
                Some(Poll::Ready(Step::Event(Event::Ask(ask))))
            }
            Arrival::Acknowledged(_) | Arrival::Task(_) => None,
            Arrival::Response(body) => {
                child_breaker::answered(&self.instance, &mut self.probe);
                if let Some(next) = self.refused_unrun(&body) {
                    return next;
                }
                self.instance.questions.pages.answered(&body, self.call.caller.tenant.as_ref());
                if let Stage::Sent(sent) = &self.stage
                    && let Some(folding) =
                        outcome::chunked(&self.instance, (&sent.peer, &self.call), self.progressed, &body)
                {
                    self.limits.tighten(SILENCE_MAX, Instant::now());
                    self.stage = Stage::Folding(Box::new(folding));
                    return None;
                }
                Some(match outcome::outcome(&self.call, body, self.revision) {
                    Ok(outcome) => {
                        let outcome = match &self.stage {
                            Stage::Sent(sent) => {
                                outcome::of_peer(outcome, &sent.peer, (&self.instance.name, &self.call))
                            }
                            _ => outcome,
                        };
                        self.done(outcome)
                    }
                    Err(why) => self.fail(CallFailure::BadAnswer(why)),
                })
            }
            Arrival::Lost(lost) => self.lost(lost),
        }
    }

    /// What comes of reading the chunks.
    fn folded(&mut self, fold: Fold) -> Poll<Step> {
        match fold {
            Fold::Progress(params) => {
                self.limits.extend(Instant::now());
                Poll::Ready(Step::Event(Event::Progress(masked::notification(params))))
            }
            Fold::Whole(result) => self.done(Outcome::Complete(result)),
            Fold::Broken(why) => self.fail(CallFailure::Incomplete(why)),
        }
    }

    /// Where a stateless upstream has proved that the call did not run: it is on its way again, once.
    fn refused_unrun(&mut self, body: &Body) -> Option<Option<Poll<Step>>> {
        let Body::Error(raw) = body else { return None };
        if self.is_second || !self.revision.is_modern() {
            return None;
        }
        let error = RpcError::from_raw(raw.clone());
        let was_refused = |attempt: Attempt| attempt.refused(error.code().unwrap_or_default());
        match error.code() {
            Some(MISSING_CAPABILITY)
                if self.may_be_task && outcome::could_be_driven(&self.call) && task::wants_tasks(&error) =>
            {
                self.wants_task = true;
                attempts::ended(&self.instance, &self.call, (Outcome::RPC_ERROR, self.sent.elapsed()));
                self.attempt.take().into_iter().for_each(was_refused);
                Some(Some(Poll::Pending))
            }
            Some(HEADER_MISMATCH) if attempts::may_repeat(&self.instance) => {
                let instance = self.instance.clone();
                self.is_second = true;
                attempts::repeated(&self.instance, &self.call, self.sent, "header_mismatch");
                self.attempt.take().into_iter().for_each(was_refused);
                self.stage =
                    Stage::Rereading(Box::pin(async move { instance.offering.reads.again(ListKinds::TOOLS).await }));
                Some(None)
            }
            Some(UNSUPPORTED_REVISION) => {
                let Stage::Sent(sent) = &self.stage else { return None };
                let why = Cause::new(CauseCode::RevisionUnsupported, "it no longer speaks the revision");
                self.instance.admission.gate.retire(&sent.peer, Retired::Revision(why));
                if !attempts::may_repeat(&self.instance) {
                    return Some(Some(self.fail(CallFailure::Lost(&attempts::withheld()))));
                }
                attempts::repeated(&self.instance, &self.call, self.sent, "revision");
                self.attempt.take().into_iter().for_each(was_refused);
                Some(self.again())
            }
            Some(HEADER_MISMATCH) => Some(Some(self.fail(CallFailure::Lost(&attempts::withheld())))),
            _ => None,
        }
    }

    /// Whether its upstream has refused to run it as anything but a task: it waits to be handed over.
    pub(crate) fn wants_task(&self) -> bool {
        self.wants_task
    }

    /// Hands it over to what drives it, which counts itself.
    pub(crate) fn hand_over<T>(&mut self, drive: impl FnOnce(&Arc<Instance>, &Call, Revision) -> T) -> T {
        self.uncount();
        let driver = drive(&self.instance, &self.call, self.revision);
        self.stage = Stage::Over;
        driver
    }

    fn uncount(&mut self) {
        if std::mem::take(&mut self.is_counted) {
            self.instance.status.metrics.inflight.decrement(1);
            self.instance.admission.traffic.ended();
        }
    }

    /// There is no answer.
    fn lost(&mut self, lost: Lost) -> Option<Poll<Step>> {
        if let Stage::Sent(Sent { peer, .. }) = &self.stage {
            own::retire_if_gone(&self.instance, &self.call.caller, peer, &lost);
            child_breaker::lost(&self.instance, peer, &lost, &mut self.probe);
            if let Some(reason) = attempts::reason_to_repeat(&self.instance, peer, &lost, self.is_second) {
                attempts::repeated(&self.instance, &self.call, self.sent, reason);
                self.attempt.take().into_iter().for_each(|attempt| attempt.failed(reason));
                return self.again();
            }
        }
        Some(self.fail(CallFailure::Lost(&lost)))
    }

    /// Sends it a second time, once: the first did not run.
    fn again(&mut self) -> Option<Poll<Step>> {
        self.is_second = true;
        match admit(&self.instance, &self.call) {
            Ok(Sending::Sent(sent)) => self.turn(Ok(sent)),
            Ok(Sending::Waiting(wait)) => {
                self.sent = Instant::now();
                self.limits.begin(self.sent);
                self.stage = Stage::Waiting(wait, WaitingFor::Start);
                None
            }
            Err(refusal) => Some(self.done(refusal)),
        }
    }

    /// Resolves when its time is over.
    fn late(&mut self, cx: &mut Context<'_>) -> Poll<Option<Poll<Step>>> {
        ready!(self.limits.poll(cx));
        Poll::Ready(Some(self.expired()))
    }

    fn expired(&mut self) -> Poll<Step> {
        let withheld = if let Stage::Sent(sent) = &mut self.stage { sent.exchange.take_back() } else { None };
        let limit = self.limits.limit();
        let was_sent = withheld.is_none() && matches!(self.stage, Stage::Sent(_));
        if was_sent {
            child_breaker::silent(&self.instance, self.sent, &mut self.probe);
        }
        // Dropping the exchange tells the upstream.
        self.fail(match (&self.stage, withheld) {
            (_, Some(why)) => CallFailure::NotTaken(limit, why),
            (Stage::Folding(_), _) if limit.key.is_empty() => {
                let why = format!("no part of its result came for {} s", limit.time.as_secs_f32());
                CallFailure::Incomplete(Cause::new(CauseCode::ResponseIncomplete, why))
            }
            (Stage::Sent(_) | Stage::Folding(_), _) => CallFailure::Timeout(limit),
            (Stage::Waiting(_, WaitingFor::Place), _) => CallFailure::Waited(limit),
            // The upstream is there, and its caller needs a session of another kind.
            (Stage::Waiting(..), _) if self.instance.admission.gate.peer().is_some() => CallFailure::NoSession,
            _ => CallFailure::NotUp,
        })
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
                            None => this.limits.go_on(&this.instance.status.metrics),
                        }
                        ready!(this.late(cx))
                    }
                },
                Stage::Waiting(wait, wait_for) => match wait.poll(cx) {
                    Poll::Ready(QueueUpdate::Waits(what, since)) => {
                        *wait_for = what;
                        this.limits.wait(what, since);
                        None
                    }
                    Poll::Ready(QueueUpdate::Turn(turn)) => this.turn(turn),
                    Poll::Ready(QueueUpdate::Never) => {
                        Some(this.done(unavailable(&this.instance.config, &this.instance.status, &this.call)))
                    }
                    Poll::Pending => ready!(this.late(cx)),
                },
                Stage::Folding(folding) => match folding.poll(cx) {
                    Poll::Ready(fold) => Some(this.folded(fold)),
                    Poll::Pending => ready!(this.late(cx)),
                },
                Stage::Rereading(reread) => match reread.as_mut().poll(cx) {
                    Poll::Ready(()) => this.again(),
                    Poll::Pending => ready!(this.late(cx)),
                },
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

    fn queue_time(&self) -> Duration {
        self.queue_time
    }
}

impl Drop for CallSource {
    fn drop(&mut self) {
        if let Stage::Sent(_) | Stage::Folding(_) = self.stage {
            attempts::ended(&self.instance, &self.call, (Outcome::CANCELLED, self.sent.elapsed()));
        }
        self.uncount();
        self.leave_queue();
        self.call.log_level.into_iter().for_each(|level| self.instance.wanted.levels.release(level));
    }
}
