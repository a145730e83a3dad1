//! The streams of changes that were replaced: heard for a while more, since what was told on them may still be on its way.

use super::resources::WantedSubscriptions;
use crate::transport::exchange::mailbox::Arrival;
use crate::transport::link::Exchange;
use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Sleep, sleep};

/// For how long. Over HTTP each stream has a connection of its own: nothing says in what order two of them arrive.
const HEARD_FOR: Duration = Duration::from_secs(1);
/// How many are heard at once; the oldest goes first.
const STREAMS_MAX: usize = 8;

/// The streams that were replaced.
pub(crate) struct Fading<'a> {
    wants: &'a WantedSubscriptions,
    streams: VecDeque<Stream>,
}

struct Stream {
    exchange: Exchange,
    over: Pin<Box<Sleep>>,
}

impl<'a> Fading<'a> {
    pub(crate) fn new(wants: &'a WantedSubscriptions) -> Self {
        Self { wants, streams: VecDeque::new() }
    }

    /// Hears a stream for a while more that was replaced just now.
    pub(crate) fn add(&mut self, exchange: Exchange) {
        if self.streams.len() == STREAMS_MAX {
            self.end(0);
        }
        self.wants.fades(exchange.id());
        self.streams.push_back(Stream { exchange, over: Box::pin(sleep(HEARD_FOR)) });
    }

    /// Reads what comes on them and lets go of those that are over; never resolves.
    pub(crate) async fn heard(&mut self) -> std::convert::Infallible {
        std::future::poll_fn(|cx| self.poll(cx)).await
    }

    fn poll<T>(&mut self, cx: &mut Context<'_>) -> Poll<T> {
        let mut at = 0;
        while let Some(stream) = self.streams.get_mut(at) {
            match stream.poll_over(cx) {
                Poll::Ready(()) => self.end(at),
                Poll::Pending => at += 1,
            }
        }
        Poll::Pending
    }

    fn end(&mut self, at: usize) {
        if let Some(stream) = self.streams.remove(at) {
            self.wants.faded(stream.exchange.id());
        }
    }
}

impl Stream {
    fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while let Poll::Ready(arrival) = self.exchange.poll(cx) {
            if matches!(arrival, Arrival::Response(_) | Arrival::Lost(_)) {
                return Poll::Ready(());
            }
        }
        self.over.as_mut().poll(cx)
    }
}

impl Drop for Fading<'_> {
    fn drop(&mut self) {
        while !self.streams.is_empty() {
            self.end(0);
        }
    }
}
