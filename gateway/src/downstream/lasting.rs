//! Legacy calls over HTTP outlive their connections: a lost stream cancels nothing.

use super::edge::Edge;
use super::replay::Replay;
use super::turns::{Turn, Turns};
use crate::protocol::frame;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// A call that goes on in a task of its own when its connection is lost before it was answered.
pub(super) struct Lasting<T: Turns> {
    work: Option<T>,
    edge: Arc<Edge>,
}

impl<T: Turns> Lasting<T> {
    pub(super) fn new(edge: &Arc<Edge>, work: T) -> Self {
        Self { work: Some(work), edge: edge.clone() }
    }

    /// Goes on in a task that writes a stream, which connections may leave and come back to.
    pub(super) fn write_to(mut self, replay: Arc<Replay>) {
        let Some(mut work) = self.work.take() else { return replay.end() };
        let edge = self.edge.clone();
        self.edge.tasks.spawn(async move {
            tokio::select! {
                () = write(&mut work, &replay) => {}
                () = edge.over() => {}
            }
            replay.end();
        });
    }
}

impl<T: Turns> Turns for Lasting<T> {
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Turn> {
        let Some(work) = &mut self.work else { return Poll::Ready(Turn::Cancelled) };
        let turn = ready!(work.poll_turn(cx));
        if !matches!(turn, Turn::Event(_)) {
            self.work = None;
        }
        Poll::Ready(turn)
    }
}

impl<T: Turns> Drop for Lasting<T> {
    fn drop(&mut self) {
        let Some(mut work) = self.work.take() else { return };
        if self.edge.tasks.is_ending() {
            return;
        }
        let edge = self.edge.clone();
        // Nobody can come back for this answer: the client was told of no stream. It is read to its end and dropped.
        self.edge.tasks.spawn(async move {
            let finish = async { while let Turn::Event(_) = work.turn().await {} };
            tokio::select! {
                () = finish => {}
                () = edge.over() => {}
            }
        });
    }
}

async fn write(work: &mut impl Turns, replay: &Replay) {
    loop {
        replay.room().await;
        match work.turn().await {
            Turn::Event(event) => replay.push(event.into()),
            Turn::End(answer) => return replay.push(frame::one_line(answer.frame).into()),
            Turn::Cancelled => return,
        }
    }
}
