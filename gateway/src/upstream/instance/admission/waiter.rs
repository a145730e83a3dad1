//! What a call that waits is told: what it waits for, as that changes, and at last its turn.

use crate::call::caller::trace::Attempt;
use crate::peer::Peer;
use crate::transport::exchange::Lost;
use crate::transport::link::Exchange;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::time::Instant;

/// A call that was sent: to whom, and what it waits on.
pub(crate) struct Sent {
    pub(crate) peer: Arc<Peer>,
    pub(crate) exchange: Exchange,
    /// Where its call is a part of a trace.
    pub(crate) attempt: Option<Attempt>,
}

impl Sent {
    /// Lets it run on unwatched.
    pub(crate) fn detach(self) {
        self.exchange.detach();
        self.attempt.into_iter().for_each(Attempt::left);
    }
}

/// A waiting call's turn: it was sent, or it could not be.
pub(crate) type Turn = Result<Sent, Lost>;

/// What a call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitingFor {
    /// Its upstream is not there yet, or no longer.
    Start,
    /// Its upstream has as many calls as it may have.
    Place,
}

/// What one who waits is told.
pub(crate) enum QueueUpdate {
    /// What it waits for from now on, and since when that is so.
    Waits(WaitingFor, Instant),
    /// Its turn has come.
    Turn(Turn),
    /// Its turn will not come.
    Never,
}

/// The side of whoever gives turns. Dropped, the turn never comes.
pub(crate) struct Waiting(Arc<Mutex<Inner>>);

/// The side of the call that waits.
pub(crate) struct Wait(Arc<Mutex<Inner>>);

struct Inner {
    wait_for: WaitingFor,
    since: Instant,
    /// What is waited for has not been told yet.
    is_news: bool,
    turn: Option<Turn>,
    /// Nobody gives turns any more.
    is_over: bool,
    /// Nobody waits any more.
    is_left: bool,
    waker: Option<Waker>,
}

/// Begins to wait.
pub(crate) fn wait(wait_for: WaitingFor) -> (Waiting, Wait) {
    let since = Instant::now();
    let inner = Inner { wait_for, since, is_news: true, turn: None, is_over: false, is_left: false, waker: None };
    let inner = Arc::new(Mutex::new(inner));
    (Waiting(inner.clone()), Wait(inner))
}

impl Waiting {
    /// Its turn has come. Where nobody waits any more it is dropped, and what was sent is withdrawn by that.
    pub(crate) fn send(self, turn: Turn) {
        let mut inner = lock(&self.0);
        if !inner.is_left {
            inner.turn = Some(turn);
        }
    }

    /// Whether nobody waits any more.
    pub(crate) fn is_closed(&self) -> bool {
        lock(&self.0).is_left
    }

    /// From now on this is waited for, where it was not before.
    pub(crate) fn waits_for(&self, wait_for: WaitingFor) {
        let mut inner = lock(&self.0);
        if inner.wait_for == wait_for {
            return;
        }
        (inner.wait_for, inner.since, inner.is_news) = (wait_for, Instant::now(), true);
        let waker = inner.waker.take();
        drop(inner);
        waker.into_iter().for_each(Waker::wake);
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut inner = lock(&self.0);
        inner.is_over = true;
        let waker = inner.waker.take();
        drop(inner);
        waker.into_iter().for_each(Waker::wake);
    }
}

impl Wait {
    /// What there is to be told; not polled again after the turn.
    pub(crate) fn poll(&mut self, cx: &Context<'_>) -> Poll<QueueUpdate> {
        let mut inner = lock(&self.0);
        if let Some(turn) = inner.turn.take() {
            return Poll::Ready(QueueUpdate::Turn(turn));
        }
        if inner.is_over {
            return Poll::Ready(QueueUpdate::Never);
        }
        if std::mem::take(&mut inner.is_news) {
            return Poll::Ready(QueueUpdate::Waits(inner.wait_for, inner.since));
        }
        inner.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Nobody waits any more.
    pub(crate) fn close(&self) {
        lock(&self.0).is_left = true;
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let mut inner = lock(&self.0);
        inner.is_left = true;
        let unread = inner.turn.take();
        drop(inner);
        // What was sent meanwhile is withdrawn, which asks others for their locks.
        drop(unread);
    }
}

fn lock(inner: &Mutex<Inner>) -> MutexGuard<'_, Inner> {
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    async fn next(wait: &mut Wait) -> QueueUpdate {
        std::future::poll_fn(|cx| wait.poll(cx)).await
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_is_told_for_what_and_since_when_as_that_changes_and_no_more() {
        let (waiting, mut wait) = wait(WaitingFor::Place);
        let begun = Instant::now();
        assert!(matches!(next(&mut wait).await, QueueUpdate::Waits(WaitingFor::Place, since) if since == begun));
        let changing = async {
            tokio::time::sleep(Duration::from_secs(7)).await;
            waiting.waits_for(WaitingFor::Start);
            tokio::time::sleep(Duration::from_secs(1)).await;
            waiting.waits_for(WaitingFor::Start);
        };
        let (told, ()) = tokio::join!(next(&mut wait), changing);
        assert!(
            matches!(told, QueueUpdate::Waits(WaitingFor::Start, since) if since == begun + Duration::from_secs(7))
        );
        assert!(tokio::time::timeout(Duration::from_secs(9), next(&mut wait)).await.is_err(), "it is the same");
        assert!(!waiting.is_closed());
        wait.close();
        assert!(waiting.is_closed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_comes_before_all_else_and_one_that_never_comes_is_told() {
        let (waiting, mut one) = wait(WaitingFor::Start);
        waiting.waits_for(WaitingFor::Place);
        waiting.send(Err(Lost::Unsent("gone".into())));
        assert!(matches!(next(&mut one).await, QueueUpdate::Turn(Err(Lost::Unsent(_)))));
        let (waiting, mut other) = wait(WaitingFor::Start);
        assert!(matches!(next(&mut other).await, QueueUpdate::Waits(..)));
        let (told, ()) = tokio::join!(next(&mut other), async { drop(waiting) });
        assert!(matches!(told, QueueUpdate::Never));
    }
}
