//! After an answer that came before the end of its request: the body is read on, bounded, before the connection is closed.
//!
//! The system resets a connection that is closed with bytes unread, and a client that is reset while it sends never reads the answer.

use super::framing::Framing;
use crate::runtime::timer::Timer;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::Instant;

/// The most bytes that are read on: four times the largest message that is taken by default.
const BYTES_MAX: usize = 64 * 1024 * 1024;
/// The longest time, and the longest pause.
const TIME_MAX: Duration = Duration::from_secs(30);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// So much is read at once, and so often before others have a turn.
const PIECE: usize = 8 * 1024;
const READS_MAX: usize = 16;

/// What is left of a body that nobody wants.
pub(crate) struct Rest {
    left: usize,
    until: Instant,
    alarm: Timer,
    piece: Box<[u8]>,
}

impl Rest {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self { left: BYTES_MAX, until: now + TIME_MAX, alarm: Timer::at(now + PAUSE_MAX), piece: vec![0; PIECE].into() }
    }

    /// Reads on; ready at the end of the body or of the connection, or where there is too much of it, or it takes too long.
    pub(crate) fn poll(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        framing: &mut Framing,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        for _ in 0..READS_MAX {
            let mut piece = ReadBuf::new(&mut self.piece);
            let Poll::Ready(read) = Pin::new(&mut *stream).poll_read(cx, &mut piece) else {
                return self.alarm.poll(cx);
            };
            let piece = piece.filled_mut();
            framing.follow(piece);
            self.left = self.left.saturating_sub(piece.len());
            let now = Instant::now();
            let is_over = read.is_err() || piece.is_empty() || self.left == 0 || now >= self.until;
            if is_over || !framing.is_within() {
                return Poll::Ready(());
            }
            self.alarm.reset(self.until.min(now + PAUSE_MAX));
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use tokio::io::{AsyncWriteExt, DuplexStream, duplex};

    /// The rest of a body of this length; how long it was read, by the clock.
    async fn read_on(length: usize, mut stream: DuplexStream) -> Duration {
        let begun = Instant::now();
        let (mut rest, mut framing) = (Rest::new(), Framing::default());
        framing.follow(format!("POST / HTTP/1.1\r\ncontent-length: {length}\r\n\r\n").into_bytes().as_mut_slice());
        poll_fn(|cx| rest.poll(&mut stream, &mut framing, cx)).await;
        begun.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_is_read_to_its_end_and_what_follows_is_not_waited_for() {
        let (mut client, server) = duplex(1 << 16);
        let send = async { client.write_all(&vec![b'x'; 3 << 20]).await };
        let (sent, took) = tokio::join!(send, read_on(3 << 20, server));
        assert!(sent.is_ok() && took.is_zero(), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_never_ends_is_read_for_so_many_bytes() {
        let (mut client, server) = duplex(1 << 20);
        let send = async {
            let mut sent = 0;
            while let Ok(count) = client.write(&[b'x'; 1 << 16]).await {
                sent += count;
            }
            sent
        };
        let (sent, _) = tokio::join!(send, read_on(usize::MAX >> 8, server));
        assert!((BYTES_MAX..=BYTES_MAX + (1 << 20) + PIECE).contains(&sent), "{sent}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_pauses_or_trickles_is_read_for_so_long() {
        let (_client, server) = duplex(64);
        assert_eq!(read_on(1 << 20, server).await, PAUSE_MAX);
        let (mut client, server) = duplex(64);
        let trickle = async {
            while client.write_all(b"x").await.is_ok() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        let ((), took) = tokio::join!(trickle, read_on(1 << 20, server));
        assert_eq!(took, TIME_MAX);
    }
}
