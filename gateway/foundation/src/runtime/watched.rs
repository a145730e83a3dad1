//! A stream, watched: what comes in, whether what goes out is taken, and that the last word arrives.

// A body as it is written to one: in pieces, each copied behind its head into one write.
mod pieces;
// Frames of HTTP/2 that ask for nothing: how many there may be.
mod frames;

use super::poll::Door;
use super::timer::late::within;
use crate::metrics::edges::Bytes;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

pub use frames::{Credit, Frames};
pub use pieces::Pieces;

/// So long, and so much, [`linger`] reads.
const LINGER_MAX: Duration = Duration::from_secs(2);
const LINGER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What is done as a stream is used. Each is a plain call, and what is not needed costs nothing.
pub trait Watch<S> {
    /// The most bytes that may come in at once.
    fn room(&self) -> usize {
        usize::MAX
    }

    /// These bytes came in. An error ends the stream.
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        let _unseen = bytes;
        Ok(())
    }

    /// What is written in place of these bytes, where that is something else; it is as long.
    fn instead(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let _unseen = bytes;
        None
    }

    /// Checks the stream before bytes are written. An error ends the stream, and none of the bytes are written.
    fn before_write(&mut self, stream: &S) -> io::Result<()> {
        let _unseen = stream;
        Ok(())
    }

    /// Something was written, or `is_pending`: nothing is taken now.
    fn wrote(&mut self, is_pending: bool);

    /// So many bytes were written.
    fn sent(&mut self, count: usize) {
        let _uncounted = count;
    }

    /// Nothing more is written. Until this is ready the stream is not closed.
    fn poll_shut(&mut self, stream: &mut S, cx: &mut Context<'_>) -> Poll<()> {
        let _unused = (stream, cx);
        Poll::Ready(())
    }

    /// The stream is about to be closed.
    fn closes(&mut self, stream: &S) {
        let _unseen = stream;
    }
}

/// Its bytes are counted, and that is all.
#[derive(Debug)]
pub struct Counted(pub Bytes);

impl<S> Watch<S> for Counted {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.0.read.increment(bytes.len() as u64);
        Ok(())
    }

    fn wrote(&mut self, _is_pending: bool) {}

    fn sent(&mut self, count: usize) {
        self.0.written.increment(count as u64);
    }
}

/// A stream that is watched.
#[derive(Debug)]
pub struct Watched<S, W: Watch<S>> {
    stream: S,
    watch: W,
    /// Who reads asks again in every turn, and the stream only once it has something.
    door: Door,
}

impl<S, W: Watch<S>> Watched<S, W> {
    /// Watches a stream from now on.
    pub fn new(stream: S, watch: W) -> Self {
        Self { stream, watch, door: Door::default() }
    }

    /// What watches it.
    pub fn watch(&mut self) -> &mut W {
        &mut self.watch
    }
}

impl<S: AsyncRead + Unpin, W: Watch<S> + Unpin> AsyncRead for Watched<S, W> {
    #[inline]
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Self { stream, watch, door } = &mut *self;
        door.poll(cx, |cx| read(stream, watch, cx, into))
    }
}

fn read<S: AsyncRead + Unpin, W: Watch<S>>(
    stream: &mut S,
    watch: &mut W,
    cx: &mut Context<'_>,
    into: &mut ReadBuf<'_>,
) -> Poll<io::Result<()>> {
    let (before, room) = (into.filled().len(), watch.room());
    if room < into.remaining() {
        let mut part = ReadBuf::new(into.initialize_unfilled_to(room));
        std::task::ready!(Pin::new(stream).poll_read(cx, &mut part))?;
        watch.read(part.filled_mut())?;
        let count = part.filled().len();
        into.advance(count);
        return Poll::Ready(Ok(()));
    }
    let read = Pin::new(stream).poll_read(cx, into);
    if into.filled().len() > before {
        watch.read(&mut into.filled_mut()[before..])?;
    }
    read
}

impl<S: AsyncWrite + Unpin, W: Watch<S> + Unpin> AsyncWrite for Watched<S, W> {
    #[inline]
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let Self { stream, watch, .. } = &mut *self;
        watch.before_write(stream)?;
        let written = match watch.instead(bytes) {
            Some(other) => Pin::new(stream).poll_write(cx, &other),
            None => Pin::new(stream).poll_write(cx, bytes),
        };
        self.watch.wrote(written.is_pending());
        if let Poll::Ready(Ok(count)) = &written {
            self.watch.sent(*count);
        }
        written
    }

    #[inline]
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Self { stream, watch, .. } = &mut *self;
        watch.before_write(stream)?;
        // What it may be is the last that there is to write.
        let written = match bytes.last().and_then(|last| watch.instead(last)) {
            Some(other) => {
                let before = bytes.iter().rev().skip(1).rev();
                let all: Vec<_> = before.map(|part| io::IoSlice::new(part)).chain([io::IoSlice::new(&other)]).collect();
                Pin::new(stream).poll_write_vectored(cx, &all)
            }
            None => Pin::new(stream).poll_write_vectored(cx, bytes),
        };
        self.watch.wrote(written.is_pending());
        if let Poll::Ready(Ok(count)) = &written {
            self.watch.sent(*count);
        }
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, watch, .. } = &mut *self;
        std::task::ready!(Pin::new(&mut *stream).poll_shutdown(cx))?;
        watch.poll_shut(stream, cx).map(Ok)
    }
}

impl<S, W: Watch<S>> Drop for Watched<S, W> {
    fn drop(&mut self) {
        self.watch.closes(&self.stream);
    }
}

/// Reads on to the end of what the other side sends, within bounds: a connection that is closed with bytes unread is reset, and
/// the last word is lost.
pub async fn linger(input: &mut (impl AsyncRead + Unpin)) {
    linger_within(LINGER_BYTES_MAX, input).await;
}

/// The same, where so much is read and no more.
pub async fn linger_within(most: usize, input: &mut (impl AsyncRead + Unpin)) {
    let reading = async {
        let mut piece = vec![0; 8 * 1024];
        let mut left = most;
        while left > 0 {
            match input.read(&mut piece).await {
                Ok(count @ 1..) => left = left.saturating_sub(count),
                _ => return,
            }
        }
    };
    let _in_time = within(LINGER_MAX, reading).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use tokio::io::AsyncWriteExt;

    /// A stream that counts how often it is asked for bytes.
    struct Asked<S>(S, usize);

    impl<S: AsyncRead + Unpin> AsyncRead for Asked<S> {
        fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            self.1 += 1;
            Pin::new(&mut self.0).poll_read(cx, into)
        }
    }

    struct Idle;

    impl<S> Watch<S> for Idle {
        fn wrote(&mut self, _is_pending: bool) {}
    }

    #[tokio::test]
    async fn a_stream_that_had_nothing_is_asked_again_once_it_wakes_and_not_before() {
        let (mut peer, stream) = tokio::io::duplex(64);
        let mut watched = Watched::new(Asked(stream, 0), Idle);
        for _ in 0..10 {
            let mut room = [0; 8];
            let polled = poll_fn(|cx| Poll::Ready(Pin::new(&mut watched).poll_read(cx, &mut ReadBuf::new(&mut room))));
            assert!(polled.await.is_pending());
        }
        assert_eq!(watched.stream.1, 1);
        peer.write_all(b"0123456789").await.unwrap();
        let mut read = [0; 10];
        watched.read_exact(&mut read[..4]).await.unwrap();
        watched.read_exact(&mut read[4..]).await.unwrap();
        assert_eq!((&read, watched.stream.1), (b"0123456789", 3));
        drop(peer);
        assert_eq!(watched.read(&mut read).await.unwrap(), 0);
    }
}
