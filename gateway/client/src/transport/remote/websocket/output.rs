//! The way out of a WebSocket: each line of a pipe is one text message in one frame. Nothing is buffered but what is left of a frame's
//! head or of a control frame, so that what the other side does not read stays in the queue, where it is counted and can be taken back.

use crate::protocol::framing::websocket::{Kind, mask, write_masked_head};
use crate::runtime::timer::late::within;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::time::Instant;

/// So much is masked for one write.
const PIECE_BYTES: usize = 16 * 1024;
/// Masks are taken from the system so many bytes at once.
const MASK_BYTES: usize = 256;
/// The most bytes of a close frame's reason.
const REASON_BYTES: usize = 123;
/// How long the close frame may take to leave.
const CLOSE_MAX: Duration = Duration::from_secs(1);
/// A server that sent so many pings while one pong waited so long does not read, and is no server that is merely busy: the pongs for
/// such pings as come in an honest connection all find room in the system's buffers. Both must be: whoever was frozen itself finds
/// a pong that waited long, and sends it before so many pings are read.
const UNREAD_PINGS: u32 = 1000;
const UNREAD_TIME: Duration = Duration::from_secs(30);

/// What the reader has the writer send besides messages.
#[derive(Clone, Default)]
pub(super) struct Controls(Arc<Mutex<Due>>);

#[derive(Default)]
struct Due {
    /// The payload of the newest ping, where it is not answered.
    pong: Option<Vec<u8>>,
    /// Since when one waits, and how many pings came since.
    since: Option<Instant>,
    pings: u32,
    /// The payload of the close frame.
    close: Vec<u8>,
}

impl Controls {
    fn due(&self) -> MutexGuard<'_, Due> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a ping answered in place of an older one that is not answered yet (RFC 6455, 5.5.3). False where nobody reads the answers.
    pub(super) fn pinged(&self, payload: &[u8]) -> bool {
        let mut due = self.due();
        let mut pong = due.pong.take().unwrap_or_default();
        if due.since.is_none() {
            (due.since, due.pings) = (Some(Instant::now()), 0);
        }
        pong.clear();
        pong.extend_from_slice(payload);
        due.pong = Some(pong);
        due.pings = due.pings.saturating_add(1);
        due.pings < UNREAD_PINGS || due.since.is_none_or(|since| since.elapsed() < UNREAD_TIME)
    }

    /// The pong that is due, which now waits for room. Older ones are sent.
    fn take_pong(&self) -> Option<Vec<u8>> {
        let mut due = self.due();
        due.pings = 0;
        due.since = due.pong.is_some().then(Instant::now);
        due.pong.take()
    }

    /// The pong that was taken is sent.
    fn is_sent(&self) {
        let mut due = self.due();
        due.pings = 0;
        due.since = due.pong.is_some().then(Instant::now);
    }

    /// What the connection is closed with.
    pub(super) fn close(&self, code: Option<u16>, reason: &str) {
        let mut due = self.due();
        due.close.clear();
        if let Some(code) = code {
            due.close.extend_from_slice(&code.to_be_bytes());
            due.close.extend_from_slice(&reason.as_bytes()[..reason.len().min(REASON_BYTES)]);
        }
    }
}

/// Writes frames. Every line is given whole, with its newline, and taken as far as it is written.
pub(super) struct Frames<W> {
    output: W,
    controls: Controls,
    /// What is left of a frame that was written in part: of a control frame, or of a head with the first byte behind it.
    left: Vec<u8>,
    /// The frame of the message that is being written: how much of it is still to come, and its mask turned for that.
    open: Option<(usize, [u8; 4])>,
    /// Where bytes are masked.
    piece: Vec<u8>,
    masks: Vec<u8>,
}

impl<W: AsyncWrite + Unpin> Frames<W> {
    pub(super) fn new(output: W, controls: Controls) -> Self {
        Self { output, controls, left: Vec::new(), open: None, piece: Vec::new(), masks: Vec::new() }
    }

    /// Closes the connection: with a close frame, where no other frame is written in part.
    pub(super) async fn finish(mut self) {
        let closing = async {
            if self.open.is_none() {
                let payload = std::mem::take(&mut self.controls.due().close);
                self.control(Kind::Close, &payload)?;
                self.output.write_all(&self.left).await?;
            }
            self.output.shutdown().await
        };
        let _in_time = within(CLOSE_MAX, closing).await;
    }

    fn next_mask(&mut self) -> io::Result<[u8; 4]> {
        if self.masks.is_empty() {
            self.masks.resize(MASK_BYTES, 0);
            getrandom::fill(&mut self.masks).map_err(io::Error::other)?;
        }
        let rest = self.masks.len() - 4;
        let mut mask = [0; 4];
        mask.copy_from_slice(&self.masks[rest..]);
        self.masks.truncate(rest);
        Ok(mask)
    }

    /// Puts a control frame behind what is left.
    fn control(&mut self, kind: Kind, payload: &[u8]) -> io::Result<()> {
        let key = self.next_mask()?;
        write_masked_head(kind, payload.len(), key, &mut self.left);
        let from = self.left.len();
        self.left.extend_from_slice(payload);
        mask(&mut self.left[from..], key);
        Ok(())
    }

    /// Writes what is left, and the pong that is due where no message is being written.
    fn poll_left(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drained(cx))?;
        if self.open.is_none()
            && let Some(pong) = self.controls.take_pong()
        {
            self.control(Kind::Pong, &pong)?;
            ready!(self.poll_drained(cx))?;
            self.controls.is_sent();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_drained(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.left.is_empty() {
            let count = ready!(Pin::new(&mut self.output).poll_write(cx, &self.left))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.left.drain(..count);
        }
        Poll::Ready(Ok(()))
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Frames<W> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        ready!(this.poll_left(cx))?;
        let mut piece = std::mem::take(&mut this.piece);
        piece.clear();
        let (left, key) = match this.open {
            Some(open) => open,
            None => {
                let length = memchr::memchr(b'\n', bytes).unwrap_or(bytes.len());
                if length == 0 {
                    return Poll::Ready(Ok(bytes.len().min(1)));
                }
                let key = this.next_mask()?;
                write_masked_head(Kind::Text, length, key, &mut piece);
                (length, key)
            }
        };
        let head = piece.len();
        piece.extend_from_slice(&bytes[..left.min(PIECE_BYTES)]);
        mask(&mut piece[head..], key);
        let written = Pin::new(&mut this.output).poll_write(cx, &piece);
        let mut taken = match written {
            Poll::Ready(Ok(count @ 1..)) => {
                // A frame whose head is out cannot be taken back any more: its first byte counts as written with it.
                if count <= head {
                    this.left.extend_from_slice(&piece[count..=head]);
                }
                count.saturating_sub(head).max(1)
            }
            other => {
                this.piece = piece;
                return other;
            }
        };
        this.piece = piece;
        let mut key = key;
        key.rotate_left(taken % 4);
        this.open = (taken < left).then_some((left - taken, key));
        if this.open.is_none() && taken < bytes.len() {
            // The newline.
            taken += 1;
        }
        Poll::Ready(Ok(taken))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_left(cx))?;
        Pin::new(&mut self.output).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.output).poll_shutdown(cx)
    }
}
