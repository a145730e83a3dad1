//! What comes back: events, then one outcome. Dropping a reply before its outcome cancels the call.

use super::event::Event;
use super::outcome::{Failure, Outcome};
use crate::protocol::revision::Revision;
use crate::protocol::value::Object;
use crate::refusal::{Reason, Refusal};
use crate::share::Abandoned;
use smallvec::SmallVec;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// One step of a reply.
#[derive(Debug)]
pub enum Step {
    /// Something happens, and the call goes on.
    Event(Event),
    /// The call has ended.
    Done(Outcome),
}

/// What a reply is read from. Dropping a source that has not ended cancels its call, down to the link.
pub trait Source: Send {
    /// The next step; never polled again after [`Step::Done`].
    fn poll_step(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Step>;

    /// The revision that events and outcome are written in; asked when a step was given.
    fn revision(&self) -> Revision;

    /// The upstream that owns the call, where that was not known at first.
    fn owner(&self) -> Option<&Arc<str>> {
        None
    }

    /// How long the upstream had the call; asked when the outcome was given.
    fn upstream_time(&self) -> Duration {
        Duration::ZERO
    }

    /// How long it waited before that: for its turn, or for its upstream to start; asked when the outcome was given.
    fn queue_time(&self) -> Duration {
        Duration::ZERO
    }
}

/// How a reply ended, for whoever watched it.
pub struct Ending<'a> {
    /// The outcome, before the client edge takes it.
    pub outcome: &'a Outcome,
    /// The upstream that owned the call; `None` where the gateway answered.
    pub owner: Option<&'a Arc<str>>,
    /// How long the upstream had it.
    pub upstream_time: Duration,
    /// How long it waited for its turn.
    pub queue_time: Duration,
}

/// What a layer wants to know of a reply: attached on its way out, told of the end.
///
/// A guard that is dropped without [`Guard::done`] saw its call cancelled.
pub trait Guard: Send + Sync {
    /// The call has ended.
    fn done(&mut self, ending: &Ending<'_>);

    /// What comes back may be written anew, before anybody is told of it.
    fn edit(&mut self, _step: &mut Step, _owner: Option<&Arc<str>>) {}

    /// Nobody waits for the answer at the moment.
    fn abandoned(&mut self, _call: &Arc<Abandoned>) {}

    /// The client has withdrawn the call; the guard is dropped next.
    fn withdrawn(&mut self) {}
}

/// What comes back on a call.
pub struct Reply {
    source: Inner,
    revision: Revision,
    owner: Option<Arc<str>>,
    guards: SmallVec<[Box<dyn Guard>; 2]>,
    /// Whether a refusal is told as the operator is told it.
    is_in_full: bool,
}

enum Inner {
    /// Boxed: nearly every reply is live, and is handed on by each room that it comes through.
    Ready(Box<Outcome>),
    Live(Pin<Box<dyn Source>>),
    Ended,
}

impl Reply {
    /// A reply that has ended already.
    pub fn ready(revision: Revision, outcome: impl Into<Outcome>) -> Self {
        Self {
            source: Inner::Ready(Box::new(outcome.into())),
            revision,
            owner: None,
            guards: SmallVec::new(),
            is_in_full: false,
        }
    }

    /// A reply that is a final result.
    pub fn complete(revision: Revision, result: Object) -> Self {
        Self::ready(revision, Outcome::Complete(result))
    }

    /// A refusal.
    pub fn refuse(revision: Revision, refusal: Refusal) -> Self {
        Self::ready(revision, refusal)
    }

    /// A reply that is read from a source.
    #[inline(always)]
    pub fn live(source: impl Source + 'static) -> Self {
        Self {
            source: Inner::Live(Box::pin(source)),
            revision: Revision::NEWEST_MODERN,
            owner: None,
            guards: SmallVec::new(),
            is_in_full: false,
        }
    }

    /// Has a refusal told with all that the operator may know.
    pub fn in_full(self) -> Self {
        Self { is_in_full: true, ..self }
    }

    /// Names the upstream that owns the call.
    pub fn owned_by(mut self, upstream: &Arc<str>) -> Self {
        self.owner = Some(upstream.clone());
        self
    }

    /// The upstream that owns the call; `None` where the gateway answers, or where it is not known yet.
    pub fn owner(&self) -> Option<&Arc<str>> {
        self.owner.as_ref().or_else(|| match &self.source {
            // It may have become known since the last step, as of a call that waited for a list.
            Inner::Live(source) => source.owner(),
            _ => None,
        })
    }

    /// Attaches what a layer wants to know of this reply.
    pub fn attach(mut self, guard: Box<dyn Guard>) -> Self {
        self.guards.push(guard);
        self
    }

    /// Nobody waits for it at the moment.
    pub fn abandon(&mut self, call: &Arc<Abandoned>) {
        self.guards.iter_mut().for_each(|guard| guard.abandoned(call));
    }

    /// Its client has withdrawn the call.
    pub fn withdraw(&mut self) {
        self.guards.iter_mut().for_each(|guard| guard.withdrawn());
    }

    /// The revision that the last step was written in.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Whether the outcome was given.
    pub fn has_ended(&self) -> bool {
        matches!(self.source, Inner::Ended)
    }

    /// The next step.
    pub fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        let (mut upstream_time, mut queue_time) = (Duration::ZERO, Duration::ZERO);
        let mut step = match &mut self.source {
            Inner::Live(source) => {
                let step = std::task::ready!(source.as_mut().poll_step(cx));
                self.revision = source.revision();
                if self.owner.is_none() {
                    self.owner = source.owner().cloned();
                }
                if let Step::Done(_) = step {
                    (upstream_time, queue_time) = (source.upstream_time(), source.queue_time());
                }
                step
            }
            Inner::Ready(_) => match std::mem::replace(&mut self.source, Inner::Ended) {
                Inner::Ready(outcome) => Step::Done(*outcome),
                _ => unreachable!("the source was ready a line above"),
            },
            Inner::Ended => {
                debug_assert!(false, "a reply is not read beyond its outcome");
                return Poll::Ready(Step::Done(Refusal::new(Reason::Internal, "the reply has ended").into()));
            }
        };
        self.guards.iter_mut().for_each(|guard| guard.edit(&mut step, self.owner.as_ref()));
        if let Step::Done(outcome) = &step {
            self.source = Inner::Ended;
            let ending = Ending { outcome, owner: self.owner.as_ref(), upstream_time, queue_time };
            self.guards.drain(..).for_each(|mut guard| guard.done(&ending));
        }
        Poll::Ready(match step {
            Step::Done(Outcome::Error(Failure::Refused(refusal))) if self.is_in_full => {
                Step::Done(refusal.in_full().into())
            }
            step => step,
        })
    }

    /// The next step; dropping the future loses nothing.
    pub async fn next(&mut self) -> Step {
        std::future::poll_fn(|cx| self.poll_step(cx)).await
    }

    /// Reads to the outcome and lets events pass by.
    pub async fn outcome(mut self) -> (Revision, Outcome) {
        loop {
            if let Step::Done(outcome) = self.next().await {
                return (self.revision, outcome);
            }
        }
    }
}

impl std::fmt::Debug for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reply")
            .field("revision", &self.revision)
            .field("ended", &self.has_ended())
            .finish_non_exhaustive()
    }
}
