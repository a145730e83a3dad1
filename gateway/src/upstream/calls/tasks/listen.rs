//! A listen call's reply that tells how tasks of a stateless upstream stand: by a stream of its own, opened anew where that ends.

use crate::call::caller::trace::Attempt;
use crate::call::reply::{Change, Event, Outcome, Reply, Source, Step};
use crate::call::{Call, ListenFilter};
use crate::peer::Peer;
use crate::protocol::frame::Method;
use crate::protocol::frame::message::Body;
use crate::protocol::json;
use crate::protocol::revision::Revision;
use crate::protocol::value::{Edit, Key, Object, TaskStatus};
use crate::transport::exchange::mailbox::Arrival;
use crate::transport::link::Exchange;
use crate::upstream::backoff;
use crate::upstream::calls::plain::plain;
use crate::upstream::instance::Instance;
use crate::upstream::instance::masked;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::WaitForCancellationFutureOwned;

/// How long the upstream has to say what it honours.
const SETTLE_MAX: Duration = Duration::from_secs(5);
/// How long after a stream ended, or was not to be had, the next is opened: first and at most.
const REOPEN_MIN: Duration = Duration::from_millis(250);
const REOPEN_MAX: Duration = Duration::from_secs(30);

/// What such a reply is read from.
pub(crate) struct TaskListening {
    instance: Arc<Instance>,
    /// As its caller made it, with the upstream's own ids.
    call: Call,
    /// The tasks that may still change.
    live: Vec<Arc<str>>,
    stage: Stage,
    /// Until the upstream has said what it honours.
    settle: Option<Pin<Box<Sleep>>>,
    /// Those that may have changed while nobody told of them.
    missed: VecDeque<Arc<str>>,
    /// One of them is asked after.
    looking: Option<Reply>,
    delay: Duration,
    stopped: Pin<Box<WaitForCancellationFutureOwned>>,
    revision: Revision,
}

enum Stage {
    /// It was opened, at that time.
    Open { peer: Arc<Peer>, exchange: Exchange, since: Instant },
    /// The next is opened after a while.
    Pausing(Pin<Box<Sleep>>),
    /// There is nothing more to hear.
    Over,
}

impl TaskListening {
    /// A reply that tells of these tasks, in the name of the call's maker.
    pub(crate) fn new(instance: &Arc<Instance>, call: Call, tasks: Vec<Arc<str>>) -> Self {
        let mut listening = Self {
            instance: instance.clone(),
            revision: call.revision(),
            call: Call { progress: false, log_level: None, param_headers: None, ..call },
            live: tasks,
            stage: Stage::Over,
            settle: Some(Box::pin(sleep(SETTLE_MAX))),
            missed: VecDeque::new(),
            looking: None,
            delay: REOPEN_MIN,
            stopped: Box::pin(instance.stopped.clone().cancelled_owned()),
        };
        listening.open();
        listening
    }

    /// Opens a stream, or tries again later.
    fn open(&mut self) {
        if self.live.is_empty() {
            self.stage = Stage::Over;
            return;
        }
        let Some(peer) = self.instance.admission.gate.peer() else { return self.pause() };
        if !peer.revision().is_modern() || !peer.offer.supports.tasks {
            self.stage = Stage::Over;
            return;
        }
        let filter = ListenFilter { tasks: self.live.clone(), ..ListenFilter::default() };
        self.call.params = filter.to_params();
        match peer.send(&self.call, self.instance.offering.beside_of(&self.call), None) {
            Ok((exchange, attempt)) => {
                attempt.into_iter().for_each(Attempt::left);
                self.stage = Stage::Open { peer, exchange, since: Instant::now() };
            }
            Err(lost) => {
                self.instance.admission.retire_if_gone(&peer, &lost);
                self.pause();
            }
        }
    }

    fn pause(&mut self) {
        let pause = self.delay.mul_f64(0.5 + backoff::random() / 2.0);
        self.delay = (self.delay * 2).min(REOPEN_MAX);
        self.stage = Stage::Pausing(Box::pin(sleep(pause)));
    }

    /// A frame of the stream.
    fn arrived(&mut self, arrival: Arrival) -> Option<Change> {
        match arrival {
            Arrival::Acknowledged(params) => return self.acknowledged(&params),
            Arrival::Task(params) => return self.told(params),
            // It will not tell of them at all, or no longer.
            Arrival::Response(Body::Error(_)) => self.stage = Stage::Over,
            Arrival::Response(_) => self.ended(),
            Arrival::Lost(lost) => {
                if let Stage::Open { peer, .. } = &self.stage {
                    self.instance.admission.retire_if_gone(peer, &lost);
                }
                self.ended();
            }
            Arrival::Progress(_) | Arrival::Log(..) | Arrival::Ask(_) => {}
        }
        None
    }

    /// The upstream says what it honours; what it told meanwhile of a stream that came before is asked after.
    fn acknowledged(&mut self, params: &Object) -> Option<Change> {
        let honoured = ListenFilter::parse(params).unwrap_or_default().tasks;
        self.live.retain(|id| honoured.contains(id));
        if self.settle.take().is_none() {
            self.missed = self.live.iter().cloned().collect();
            return None;
        }
        Some(Change::Acknowledged(ListenFilter { tasks: self.live.clone(), ..ListenFilter::default() }))
    }

    /// How a task stands.
    fn told(&mut self, params: Object) -> Option<Change> {
        let id = params.find("taskId").and_then(json::unquote)?;
        let at = self.live.iter().position(|live| **live == *id)?;
        if TaskStatus::of(&params).is_some_and(TaskStatus::is_final) {
            self.live.swap_remove(at);
        }
        Some(Change::Task(masked::notification(params)))
    }

    fn ended(&mut self) {
        if let Stage::Open { since, .. } = &self.stage
            && since.elapsed() >= REOPEN_MAX
        {
            self.delay = REOPEN_MIN;
        }
        self.pause();
    }

    /// The next that its stream tells; opens another where that has ended.
    fn poll_stream(&mut self, cx: &mut Context<'_>) -> Poll<Change> {
        loop {
            match &mut self.stage {
                Stage::Open { exchange, .. } => {
                    let arrival = std::task::ready!(exchange.poll(cx));
                    if let Some(change) = self.arrived(arrival) {
                        return Poll::Ready(change);
                    }
                }
                Stage::Pausing(pause) => {
                    std::task::ready!(pause.as_mut().poll(cx));
                    self.open();
                }
                Stage::Over => return Poll::Pending,
            }
        }
    }

    /// How the next of those stands that may have changed unseen.
    fn poll_missed(&mut self, cx: &mut Context<'_>) -> Poll<Change> {
        loop {
            let Some(looking) = &mut self.looking else {
                let Some(id) = self.missed.pop_front() else { return Poll::Pending };
                let params = Object::parse(format!("{{\"taskId\":{}}}", json::quote(&id)).into()).unwrap_or_default();
                self.looking =
                    Some(plain(&self.instance, Call { method: Method::TasksGet, params, ..self.call.clone() }));
                continue;
            };
            let Step::Done(outcome) = std::task::ready!(looking.poll_step(cx)) else { continue };
            self.looking = None;
            let Outcome::Complete(task) = outcome else { continue };
            let told = Object::parse(task.with(&[(Key::ResultType, Edit::Drop)])).ok();
            if let Some(change) = told.and_then(|told| self.told(told)) {
                return Poll::Ready(change);
            }
        }
    }
}

impl Source for TaskListening {
    fn poll_step(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Step> {
        let this = &mut *self;
        let is_stopped = this.stopped.as_mut().poll(cx).is_ready();
        if is_stopped || this.settle.as_mut().is_some_and(|settle| settle.as_mut().poll(cx).is_ready()) {
            return Poll::Ready(Step::Done(Outcome::Complete(Object::empty())));
        }
        let change = match this.poll_stream(cx) {
            Poll::Pending if this.settle.is_some() && matches!(this.stage, Stage::Over) => {
                return Poll::Ready(Step::Done(Outcome::Complete(Object::empty())));
            }
            Poll::Pending => this.poll_missed(cx),
            ready => ready,
        };
        change.map(|change| Step::Event(Event::Change(change)))
    }

    fn revision(&self) -> Revision {
        self.revision
    }
}
