//! JSON or a stream: decided late, when it is known what comes first.

use crate::downstream::running::{StepQueue, Turn};
use crate::runtime::timer::{Timer, Timers};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Instant;

/// How long headers wait for the first event or the outcome before a stream is opened.
const DECIDE_AFTER: Duration = Duration::from_secs(2);

/// Work of which it is not known yet what comes first.
pub(super) struct Deciding<T> {
    pub(super) work: T,
    /// Whether the response may be a stream; a client that reads none hears of no event.
    may_stream: bool,
    timers: Arc<Timers>,
    timer: Option<Timer>,
}

impl<T: StepQueue> Deciding<T> {
    pub(super) fn new(work: T, may_stream: bool, timers: &Arc<Timers>) -> Self {
        Self { work, may_stream, timers: timers.clone(), timer: None }
    }

    /// The first frame; `None` where a stream must be opened before it comes.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Turn>> {
        loop {
            match self.work.poll_turn(cx) {
                Poll::Ready(Turn::Event(_)) if !self.may_stream => {}
                Poll::Ready(turn) => return Poll::Ready(Some(turn)),
                Poll::Pending if !self.may_stream => return Poll::Pending,
                // What is there at once needs no clock.
                Poll::Pending => {
                    let timer = self.timer.get_or_insert_with(|| self.timers.take(Instant::now() + DECIDE_AFTER));
                    return timer.poll(cx).map(|()| None);
                }
            }
        }
    }
}
