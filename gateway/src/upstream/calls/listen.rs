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
    /// When it is no longer waited for that the upstream says what it honours; none: that may take as long as it takes.
    limit: Option<Pin<Box<Sleep>>>,
    is_acknowledged: bool,
    stopped: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl ListenSource {
    pub(crate) fn new(instance: &Arc<Instance>, filter: ListenFilter, caller: &Caller) -> Self {
        let mut source = Self::lasting(instance, filter, caller);
        source.limit = Some(Box::pin(sleep(SETTLE_MAX)));
        source
    }

    /// The same, for resources of which the client was told that they are heard of: an upstream that is not there is waited for.
    pub(crate) fn lasting(instance: &Arc<Instance>, filter: ListenFilter, caller: &Caller) -> Self {
        let is_wanted = !filter.uris.is_empty();
        let key = instance.wanted.subscriptions.listen(filter.uris, &caller.share());
        if is_wanted && instance.admission.gate.peer().is_none() {
            instance.admission.demand.wake();
        }
        let stopped = Box::pin(instance.stopped.clone().cancelled_owned());
        let (instance, revision) = (instance.clone(), caller.revision);
        Self { instance, key, revision, limit: None, is_acknowledged: false, stopped }
    }
}

impl Source for ListenSource {
    fn poll_step(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Step> {
        let this = &mut *self;
        if this.stopped.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Step::Done(Outcome::Complete(Object::empty())));
        }
        let subscriptions = &this.instance.wanted.subscriptions;
        let change = match this.is_acknowledged {
            false => {
                let is_late = this.limit.as_mut().is_some_and(|limit| limit.as_mut().poll(cx).is_ready());
                let uris = std::task::ready!(subscriptions.poll_honoured(this.key, is_late, cx));
                (this.is_acknowledged, this.limit) = (true, None);
                Change::Acknowledged(ListenFilter { uris, ..ListenFilter::default() })
            }
            true => Change::Updated(std::task::ready!(subscriptions.poll_updated(this.key, cx))),
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
