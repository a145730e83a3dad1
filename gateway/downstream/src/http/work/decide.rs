//! JSON or a stream: decided late, when it is known what comes first.

use crate::response::steps::{StepQueue, Turn};
use crate::runtime::timer::{Timer, Timers};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Instant;

/// The longest that headers wait for the first event or the outcome before a stream is opened, where streams may be as silent. The
/// clients and proxies that give up a silent response do so after a minute at the soonest; a few platforms after half of one, where
/// `sse_keepalive` is to be shorter anyway.
const HELD_MAX: Duration = Duration::from_secs(45);

/// How long an answer is held for before a stream is opened without anything to say: as long as a stream may be silent. A large answer
/// arrives in one piece of any size that way, where some clients refuse large events.
pub(crate) fn silence_of(sse_keepalive: Duration) -> Duration {
    sse_keepalive.min(HELD_MAX)
}

/// Work of which it is not known yet what comes first.
pub(crate) struct Deciding<T> {
    pub(crate) work: T,
    /// Whether the response may be a stream; a client that reads none hears of no event.
    may_stream: bool,
    /// How long a stream waits for something to say.
    held: Duration,
    timer: Option<Timer>,
}

impl<T: StepQueue> Deciding<T> {
    pub(crate) fn new(work: T, may_stream: bool, held: Duration) -> Self {
        Self { work, may_stream, held, timer: None }
    }

    /// The first frame; `None` where a stream must be opened before it comes. The timer is one of its connection's.
    pub(crate) fn poll(&mut self, timers: &Arc<Timers>, cx: &mut Context<'_>) -> Poll<Option<Turn>> {
        loop {
            match self.work.poll_turn(cx) {
                Poll::Ready(Turn::Event(_)) if !self.may_stream => {}
                Poll::Ready(turn) => return Poll::Ready(Some(turn)),
                Poll::Pending if !self.may_stream => return Poll::Pending,
                // What is there at once needs no clock.
                Poll::Pending => {
                    let timer = self.timer.get_or_insert_with(|| timers.take(Instant::now() + self.held));
                    return timer.poll(cx).map(|()| None);
                }
            }
        }
    }
}
