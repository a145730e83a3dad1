//! Legacy calls over HTTP outlive their connections: a lost stream cancels nothing.

use crate::call::share::{Abandoned, Share};
use crate::edge::Edge;
use crate::memory::account::Kind;
use crate::memory::budget::Budget;
use crate::metrics;
use crate::protocol::frame::rpc_error;
use crate::protocol::frame::rpc_error::RpcError;
use crate::protocol::{frame, json};
use crate::response::EncodedResponse;
use crate::response::steps::{Lose, Lost, StepQueue, Turn};
use crate::session::Replay;
use bytes::Bytes;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// What a call keeps that no connection waits for: its request, in the buffer that was read with it, and its own state. While a
/// connection is open that is counted with it.
const KEPT: usize = 48 * 1024;

/// A call that goes on in a task of its own when its connection is lost before it was answered.
pub(crate) struct DetachedCall<T: Lose> {
    work: Option<T>,
    edge: Arc<Edge>,
    /// For which client it goes on.
    share: Share,
}

impl<T: Lose> DetachedCall<T> {
    pub(crate) fn new(edge: &Arc<Edge>, share: Share, work: T) -> Self {
        Self { work: Some(work), edge: edge.clone(), share }
    }

    /// The work, while it is not over.
    pub(crate) fn work(&mut self) -> Option<&mut T> {
        self.work.as_mut()
    }

    /// Goes on in a task that writes a stream, which connections may leave and come back to.
    pub(crate) fn write_to(mut self, replay: Arc<Replay>) {
        let Some(mut work) = self.work.take() else { return replay.end() };
        let edge = self.edge.clone();
        let budget = edge.budget.owned_by(self.share.owner());
        self.edge.tasks.spawn(async move {
            let lost = tokio::select! {
                // First: when time is over it still has its last word.
                biased;
                lost = written(&mut work, &replay, &budget) => lost,
                () = edge.over() => None,
            };
            if let Some(answer) = lost.and_then(|why| work.lose(why)) {
                end(answer, &replay);
            }
            replay.end();
        });
    }
}

impl<T: Lose> StepQueue for DetachedCall<T> {
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Turn> {
        let Some(work) = &mut self.work else { return Poll::Ready(Turn::Cancelled) };
        let turn = ready!(work.poll_turn(cx));
        if !matches!(turn, Turn::Event(_)) {
            self.work = None;
        }
        Poll::Ready(turn)
    }
}

impl<T: Lose> Drop for DetachedCall<T> {
    fn drop(&mut self) {
        let Some(mut work) = self.work.take() else { return };
        if self.edge.tasks.is_ending() {
            return;
        }
        let budget = self.edge.budget.owned_by(self.share.owner());
        // Where there is no room for it the call is dropped, and so cancelled.
        let Ok(charge) = budget.charge(Kind::Body, KEPT) else { return };
        let edge = self.edge.clone();
        // Nobody can come back for this answer: the client was told of no stream. It is read to its end and dropped.
        let left = Abandoned::new(false);
        work.abandon(&left);
        self.edge.tasks.spawn(async move {
            let finish = async { while let Turn::Event(_) = work.turn().await {} };
            tokio::select! {
                () = finish => {}
                () = edge.over() => {}
                () = left.given() => {}
                () = poll_fn(|cx| charge.poll_lost(cx)) => {}
            }
        });
    }
}

/// Writes a call to its end. While no connection reads its stream it is counted, and its place may be given to another call: why it is
/// given up, where it is.
async fn written(work: &mut impl Lose, replay: &Arc<Replay>, budget: &Budget) -> Option<Lost> {
    loop {
        tokio::select! {
            biased;
            () = write(work, replay) => return None,
            () = replay.is_attached(false) => {}
        }
        let Ok(charge) = budget.charge(Kind::Body, KEPT) else { return Some(Lost::Memory) };
        let left = Abandoned::new(true);
        work.abandon(&left);
        tokio::select! {
            biased;
            () = write(work, replay) => return None,
            () = left.given() => return Some(Lost::Place),
            () = poll_fn(|cx| charge.poll_lost(cx)) => return Some(Lost::Memory),
            () = replay.is_attached(true) => {
                if !left.back() {
                    return Some(Lost::Place);
                }
            }
        }
    }
}

async fn write(work: &mut impl StepQueue, replay: &Arc<Replay>) {
    loop {
        replay.room().await;
        match work.turn().await {
            Turn::Event(event) => {
                // One that finds no memory is lost, as those are that a full stream has no room for.
                if replay.push(event.into()).is_err() {
                    metrics::dropped("overflow").increment(1);
                }
            }
            Turn::End(answer) => return end(answer, replay),
            Turn::Cancelled => return,
        }
    }
}

/// Writes the response, or that there is no memory for it.
fn end(EncodedResponse { frame, charge, .. }: EncodedResponse, replay: &Arc<Replay>) {
    // It counts as the stream's from here on.
    drop(charge);
    let frame = Bytes::from(frame::message::one_line(frame));
    if let Err(spent) = replay.push(frame.clone()) {
        let error = RpcError::new(rpc_error::INTERNAL, &format!("the answer was dropped: {spent}"), None);
        let _last_words = replay.push(frame::message::error(json::get(&frame, "id"), error.raw()));
    }
}
