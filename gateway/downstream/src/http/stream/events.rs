//! A stream of server-sent events to one client connection, with comments that keep it alive.

use crate::call::caller::credential::Revocation;
use crate::memory::Composed;
use crate::metrics;
use crate::metrics::messages;
use crate::protocol::frame;
use crate::protocol::framing::sse;
use crate::response::EncodedResponse;
use crate::runtime::FairShare;
use crate::session::client::Session;
use ::metrics::Gauge;
use bytes::Bytes;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// Where a stream's messages come from.
pub(crate) trait Feed: Send {
    /// The next message; `None` at the end. Not to be called again after it.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Fed>>;
}

/// One message of a stream.
pub(crate) struct Fed {
    /// Its event id, where the stream can be resumed.
    pub(crate) id: Option<String>,
    /// The frame, in one line.
    pub(crate) frame: Bytes,
    /// Whether nothing follows.
    pub(crate) is_last: bool,
}

impl Fed {
    /// A message that more may follow.
    pub(crate) fn event(frame: Vec<u8>) -> Self {
        Self { id: None, frame: frame.into(), is_last: false }
    }

    /// The last message.
    pub(crate) fn end(answer: EncodedResponse) -> Self {
        Self { id: None, frame: frame::message::one_line(answer.frame).into(), is_last: true }
    }
}

type Revoked = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A stream to one connection. Dropping it drops its feed.
pub struct Stream {
    feed: Box<dyn Feed>,
    /// What stands before the first message.
    head: Option<Bytes>,
    /// The last message, while those before it are on their way.
    last: Option<Fed>,
    /// A message was given since the connection was last flushed.
    is_unflushed: bool,
    is_done: bool,
    /// Resolves when what its request was let in with counts no more.
    revoked: Option<Revoked>,
    stretch: FairShare,
    period: Duration,
    alarm: Pin<Box<Sleep>>,
    open: Open,
}

impl Stream {
    /// A stream with a comment at least every `period`; `kind` is its label in the metrics.
    pub(crate) fn new(feed: impl Feed + 'static, head: Vec<u8>, period: Duration, kind: &'static str) -> Self {
        Self {
            feed: Box::new(feed),
            head: (!head.is_empty()).then(|| head.into()),
            last: None,
            is_unflushed: false,
            is_done: false,
            revoked: None,
            stretch: FairShare::default(),
            period,
            alarm: Box::pin(tokio::time::sleep(period)),
            open: Open::new(kind),
        }
    }

    /// The stream, which ends when what its request was let in with is revoked.
    pub(crate) fn until(self, revocation: &Revocation) -> Self {
        let revoked = revocation.revoked().map(|revoked| -> Revoked { Box::pin(revoked) });
        Self { revoked, ..self }
    }

    /// The same for a stream of a session, which ends with that anyway; its request may have come by another way.
    pub(crate) fn of_session(self, session: &Session, revocation: &Revocation) -> Self {
        if session.lasts && session.revocation.is(revocation) { self } else { self.until(revocation) }
    }

    /// The next bytes to send.
    pub(crate) fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.is_done {
            return Poll::Ready(None);
        }
        if self.revoked.as_mut().is_some_and(|revoked| revoked.as_mut().poll(cx).is_ready()) {
            self.is_done = true;
            return Poll::Ready(None);
        }
        if let Some(head) = self.head.take() {
            return Poll::Ready(Some(head));
        }
        if let Some(last) = self.last.take() {
            return Poll::Ready(Some(self.give(last)));
        }
        // What waits for a slow client may be thousands of messages.
        std::task::ready!(self.stretch.poll_turn(cx));
        match self.feed.poll_next(cx) {
            // Some clients lose a notice that arrives in one piece with the response: what was given is flushed first.
            Poll::Ready(Some(last)) if last.is_last && self.is_unflushed => {
                self.is_unflushed = false;
                self.last = Some(last);
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Poll::Ready(Some(fed)) => Poll::Ready(Some(self.give(fed))),
            Poll::Ready(None) => {
                self.is_done = true;
                Poll::Ready(None)
            }
            Poll::Pending => {
                self.is_unflushed = false;
                std::task::ready!(self.alarm.as_mut().poll(cx));
                self.rest();
                Poll::Ready(Some(Bytes::from_static(sse::KEEP_ALIVE)))
            }
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.is_done
    }

    fn give(&mut self, fed: Fed) -> Bytes {
        self.is_unflushed = true;
        self.is_done = fed.is_last;
        self.rest();
        self.stretch.wrote(fed.frame.len());
        messages::CLIENT.sent();
        let (id, frame) = (fed.id.as_deref(), &fed.frame);
        Composed::of(sse::room(id, frame), |out| sse::encode(id, frame, out)).into()
    }

    fn rest(&mut self) {
        let due = Instant::now() + self.period;
        self.alarm.as_mut().reset(due);
    }
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("open", &self.open.kind).field("is_done", &self.is_done).finish_non_exhaustive()
    }
}

/// Counts the stream for as long as it lives.
struct Open {
    kind: &'static str,
    gauge: Gauge,
}

impl Open {
    fn new(kind: &'static str) -> Self {
        let gauge = metrics::streams(kind);
        gauge.increment(1.0);
        Self { kind, gauge }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.gauge.decrement(1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages that are all there already.
    struct Waiting(usize);

    impl Feed for Waiting {
        fn poll_next(&mut self, _cx: &mut Context<'_>) -> Poll<Option<Fed>> {
            self.0 -= 1;
            Poll::Ready(Some(Fed { is_last: self.0 == 0, ..Fed::event(b"{}".to_vec()) }))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn of_thousands_that_wait_only_so_many_are_written_in_one_turn() {
        let mut stream = Stream::new(Waiting(5_000), Vec::new(), Duration::from_secs(15), "sse");
        let (mut in_a_row, mut written) = (0, 0);
        while !stream.is_done() {
            std::future::poll_fn(|cx| {
                in_a_row = 0;
                while !stream.is_done() && stream.poll_chunk(cx).map(drop).is_ready() {
                    in_a_row += 1;
                }
                Poll::Ready(())
            })
            .await;
            assert!(in_a_row <= 128, "{in_a_row} messages in one turn");
            written += in_a_row;
        }
        assert_eq!(written, 5_000);
    }
}
