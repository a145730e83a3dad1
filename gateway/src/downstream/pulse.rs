//! Watches a connection: a head that never ends, an idle peer, a peer that does not read.

use bytes::Bytes;
use http::Response;
use http_body::{Body, Frame, SizeHint};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// How long a connection may lie idle between two requests.
const IDLE: Duration = Duration::from_secs(300);
/// How long a peer may take nothing of what is written to it.
const UNREAD: Duration = Duration::from_secs(60);

/// What is known of one connection, in milliseconds since it began plus one; 0 means no.
#[derive(Debug)]
pub(super) struct Pulse {
    began: Instant,
    head: Duration,
    serving: AtomicBool,
    /// Since when a head has been coming in.
    head_since: AtomicU64,
    /// Since when there has been no request, as far as the watch has noticed: it costs a request no look at the clock.
    idle_since: AtomicU64,
    /// Since when the peer has not been reading.
    unread_since: AtomicU64,
}

impl Pulse {
    /// A connection that must send a head within `head` of its first byte, or of its beginning.
    pub(super) fn new(head: Duration) -> Self {
        Self {
            began: Instant::now(),
            head,
            serving: AtomicBool::new(false),
            head_since: AtomicU64::new(1),
            idle_since: AtomicU64::new(0),
            unread_since: AtomicU64::new(0),
        }
    }

    /// A head has come in whole and is being served, until the guard is gone.
    pub(super) fn serve(self: &Arc<Self>) -> Serving {
        self.serving.store(true, Ordering::Relaxed);
        self.head_since.store(0, Ordering::Relaxed);
        self.idle_since.store(0, Ordering::Relaxed);
        Serving(self.clone())
    }

    /// Resolves when patience has come to its end. One timer a connection, which a request does not touch.
    pub(super) async fn stalled(&self) {
        loop {
            let is_idle = !self.serving.load(Ordering::Relaxed);
            if is_idle && self.idle_since.load(Ordering::Relaxed) == 0 {
                self.idle_since.store(self.now(), Ordering::Relaxed);
            }
            let limits = [(&self.head_since, self.head), (&self.idle_since, IDLE), (&self.unread_since, UNREAD)];
            let due = limits.map(|(since, limit)| match since.load(Ordering::Relaxed) {
                0 => self.now() + limit.as_millis() as u64,
                since => since + limit.as_millis() as u64,
            });
            let next = due.into_iter().min().unwrap_or_default();
            if next <= self.now() {
                return;
            }
            tokio::time::sleep_until(self.began + Duration::from_millis(next - 1)).await;
        }
    }

    fn now(&self) -> u64 {
        self.began.elapsed().as_millis() as u64 + 1
    }

    fn read(&self) {
        if !self.serving.load(Ordering::Relaxed) && self.head_since.load(Ordering::Relaxed) == 0 {
            self.head_since.store(self.now(), Ordering::Relaxed);
        }
    }

    fn wrote(&self, is_pending: bool) {
        let unread = self.unread_since.load(Ordering::Relaxed);
        if is_pending && unread == 0 {
            self.unread_since.store(self.now(), Ordering::Relaxed);
        } else if !is_pending && unread != 0 {
            self.unread_since.store(0, Ordering::Relaxed);
        }
    }
}

/// A request is being served for as long as this lives.
pub(super) struct Serving(Arc<Pulse>);

impl Serving {
    /// Goes on until the response's body is sent.
    pub(super) fn until_sent<R>(self, response: Response<R>) -> Response<Sending<R>> {
        response.map(|body| Sending { body, _serving: self })
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.serving.store(false, Ordering::Relaxed);
    }
}

/// A response's body that tells when it is sent.
pub(super) struct Sending<R> {
    body: R,
    _serving: Serving,
}

impl<R: Body<Data = Bytes> + Unpin> Body for Sending<R> {
    type Data = Bytes;
    type Error = R::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, R::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A stream that is watched.
pub(super) struct Watched<S> {
    stream: S,
    pulse: Arc<Pulse>,
}

impl<S> Watched<S> {
    pub(super) fn new(stream: S, pulse: Arc<Pulse>) -> Self {
        Self { stream, pulse }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, into);
        if into.filled().len() > before {
            self.pulse.read();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.pulse.wrote(written.is_pending());
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.pulse.wrote(written.is_pending());
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
