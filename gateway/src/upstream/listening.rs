//! A listen call's reply, and the task that has the live peer keep what listeners want.

use super::fault::Trouble;
use super::peer::Peer;
use super::standing::Standing;
use super::{levels, streaming, subscribing};
use crate::call::{Change, Event, ListenFilter, Outcome, Source, Step};
use crate::protocol::{Object, Revision};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Sleep, sleep};
use tokio_util::sync::WaitForCancellationFutureOwned;

/// How long the upstream has to say what it honours.
const SETTLE_MAX: Duration = Duration::from_secs(5);

/// What a listen call's reply is read from.
pub(crate) struct ListenSource {
    standing: Arc<Standing>,
    key: usize,
    revision: Revision,
    /// Until the upstream has said what it honours.
    settle: Option<Pin<Box<Sleep>>>,
    stopped: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl ListenSource {
    pub(crate) fn new(standing: &Arc<Standing>, filter: ListenFilter, revision: Revision) -> Self {
        let is_wanted = !filter.uris.is_empty();
        let key = standing.wants.listen(filter.uris);
        if is_wanted && standing.gate.peer().is_none() {
            standing.need.wake();
        }
        let stopped = Box::pin(standing.stopped.clone().cancelled_owned());
        Self { standing: standing.clone(), key, revision, settle: Some(Box::pin(sleep(SETTLE_MAX))), stopped }
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
                let uris = std::task::ready!(this.standing.wants.poll_honoured(this.key, is_late, cx));
                this.settle = None;
                Change::Acknowledged(ListenFilter { uris, ..ListenFilter::default() })
            }
            None => Change::Updated(std::task::ready!(this.standing.wants.poll_updated(this.key, cx))),
        };
        Poll::Ready(Step::Event(Event::Change(change)))
    }

    fn revision(&self) -> Revision {
        self.revision
    }
}

impl Drop for ListenSource {
    fn drop(&mut self) {
        self.standing.wants.leave(self.key);
    }
}

/// Has a peer keep what is wanted, for as long as it lives; `was_away` says that changes may have been missed. `settled` hears when
/// it tells of changes, or is known not to; who does not wait for that may miss what changes before, which is then made good.
pub(crate) async fn keep(standing: Arc<Standing>, peer: Arc<Peer>, was_away: bool, settled: oneshot::Sender<()>) {
    if !peer.revision().is_modern() {
        return tokio::select! {
            () = subscribing::keep(&standing, &peer, was_away) => {}
            () = levels::keep(&standing.levels, &peer) => {}
        };
    }
    if let Trouble::Lost(lost) = &streaming::keep(&standing, &peer, was_away, settled).await {
        standing.noticed(&peer, lost);
    }
}
