//! A listen call's reply.

use crate::call::ListenFilter;
use crate::call::caller::Caller;
use crate::call::reply::{Change, Event, Outcome, Source, Step};
use crate::protocol::revision::Revision;
use crate::protocol::value::Object;
use crate::upstream::instance::Instance;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Sleep, sleep};
use tokio_util::sync::WaitForCancellationFutureOwned;

/// How long the upstream has to say what it honours.
const SETTLE_MAX: Duration = Duration::from_secs(5);

/// What a listen call's reply is read from.
pub(crate) struct ListenSource {
    instance: Arc<Instance>,
    key: usize,
    revision: Revision,
    /// Until the upstream has said what it honours.
    settle: Option<Pin<Box<Sleep>>>,
    stopped: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl ListenSource {
    pub(crate) fn new(instance: &Arc<Instance>, filter: ListenFilter, caller: &Caller) -> Self {
        let is_wanted = !filter.uris.is_empty();
        let key = instance.wanted.subscriptions.listen(filter.uris, &caller.share());
        if is_wanted && instance.admission.gate.peer().is_none() {
            instance.admission.demand.wake();
        }
        let stopped = Box::pin(instance.stopped.clone().cancelled_owned());
        let (revision, settle) = (caller.revision, Some(Box::pin(sleep(SETTLE_MAX))));
        Self { instance: instance.clone(), key, revision, settle, stopped }
    }
}

impl Source for ListenSource {
    fn poll_step(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Step> {
        let this = &mut *self;
        if this.stopped.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Step::Done(Outcome::Complete(Object::empty())));
        }
        let change = match &mut this.settle {
            Some(settle) => {
                let is_late = settle.as_mut().poll(cx).is_ready();
                let uris = std::task::ready!(this.instance.wanted.subscriptions.poll_honoured(this.key, is_late, cx));
                this.settle = None;
                Change::Acknowledged(ListenFilter { uris, ..ListenFilter::default() })
            }
            None => Change::Updated(std::task::ready!(this.instance.wanted.subscriptions.poll_updated(this.key, cx))),
        };
        Poll::Ready(Step::Event(Event::Change(change)))
    }

    fn revision(&self) -> Revision {
        self.revision
    }
}

impl Drop for ListenSource {
    fn drop(&mut self) {
        self.instance.wanted.subscriptions.leave(self.key);
    }
}
