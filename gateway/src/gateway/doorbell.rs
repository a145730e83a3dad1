//! Listens at stdin for the first frame that means it: hosts start a throw-away process to see which era we speak.

use crate::protocol::lines::{Line, Lines};
use crate::protocol::{Frame, Method};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::watch;

/// A client that only wanted to know the era has closed stdin within this.
const PROBED_WITHIN: Duration = Duration::from_millis(250);
/// A longer first frame is no probe.
const PROBE_BYTES_MAX: usize = 64 * 1024;

/// What was heard so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heard {
    Nothing,
    /// Only the question for our era.
    Probe,
    /// Something that needs upstreams.
    Caller,
    /// The end, and nothing that needs them.
    End,
}

/// Stdin, heard along.
pub(super) struct Doorbell<R> {
    stdin: R,
    heard: watch::Sender<Heard>,
    /// `None` once there is nothing more to find out.
    lines: Option<Lines>,
}

/// What the doorbell rings.
pub(super) struct Bell(watch::Receiver<Heard>);

impl<R> Doorbell<R> {
    pub(super) fn new(stdin: R) -> (Self, Bell) {
        let (heard, bell) = watch::channel(Heard::Nothing);
        (Self { stdin, heard, lines: Some(Lines::new(PROBE_BYTES_MAX)) }, Bell(bell))
    }

    fn hear(&mut self, bytes: &[u8]) {
        let Some(lines) = &mut self.lines else { return };
        lines.buffer().extend_from_slice(bytes);
        let mut heard = None;
        while let Some(line) = if bytes.is_empty() { lines.last() } else { lines.next_line() } {
            heard = Some(if is_probe(&line) { Heard::Probe } else { Heard::Caller });
            if heard == Some(Heard::Caller) {
                break;
            }
        }
        if bytes.is_empty() && heard != Some(Heard::Caller) {
            heard = Some(Heard::End);
        }
        if matches!(heard, Some(Heard::Caller | Heard::End)) {
            self.lines = None;
        }
        if let Some(heard) = heard {
            self.heard.send_replace(heard);
        }
    }
}

fn is_probe(line: &Line) -> bool {
    match line {
        Line::Frame(text) => matches!(Frame::parse(text), Ok(Frame::Request { method: Method::Discover, .. })),
        Line::TooLong { .. } => false,
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Doorbell<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.stdin).poll_read(cx, into))?;
        self.hear(&into.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl Bell {
    /// Resolves when the upstreams are needed, or (`false`) when they never will be.
    pub(super) async fn rings(&mut self) -> bool {
        loop {
            let heard = *self.0.borrow_and_update();
            match heard {
                Heard::Caller => return true,
                Heard::End => return false,
                Heard::Probe => match tokio::time::timeout(PROBED_WITHIN, self.0.changed()).await {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) => return false,
                    Err(_) => return true,
                },
                Heard::Nothing => {
                    if self.0.changed().await.is_err() {
                        return false;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const DISCOVER: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\"}\n";
    const LIST: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n";

    /// What rings when a client writes these pieces, and then closes stdin or not.
    async fn rings(pieces: &[&[u8]], closes: bool) -> (bool, Duration) {
        let (mut client, stdin) = tokio::io::duplex(1 << 16);
        let (mut stdin, mut bell) = Doorbell::new(stdin);
        let began = tokio::time::Instant::now();
        for piece in pieces {
            client.write_all(piece).await.unwrap();
        }
        let _kept = (!closes).then_some(client);
        let mut out = vec![0; 1 << 16];
        let read = async { while stdin.read(&mut out).await.unwrap() > 0 {} };
        let rang = tokio::select! {
            biased;
            rang = bell.rings() => rang,
            () = async { read.await; std::future::pending().await } => unreachable!(),
        };
        (rang, began.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_only_looks_starts_nothing() {
        assert_eq!(rings(&[DISCOVER], true).await, (false, Duration::ZERO));
        assert_eq!(rings(&[], true).await, (false, Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_stays_or_asks_does() {
        assert_eq!(rings(&[DISCOVER], false).await, (true, PROBED_WITHIN));
        assert_eq!(rings(&[LIST], true).await, (true, Duration::ZERO));
        assert_eq!(rings(&[DISCOVER, &LIST[..9], &LIST[9..]], true).await, (true, Duration::ZERO));
        assert_eq!(rings(&[&LIST[..LIST.len() - 1]], true).await, (true, Duration::ZERO), "the last line needs no end");
        assert_eq!(rings(&[b"nonsense\n"], true).await, (true, Duration::ZERO));
    }
}
