//! Listens at stdin for the first frame that means it, since hosts start a throw-away process to see which era we speak; and for
//! what the client declares.

use crate::protocol::capabilities::beyond::Declared;
use crate::protocol::frame::Method;
use crate::protocol::frame::message::Frame;
use crate::protocol::framing::lines::{Line, Lines};
use crate::protocol::json;
use crate::protocol::meta::Meta;
use crate::protocol::revision::Revision;
use crate::protocol::value::{Key, Object};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::watch;
use tokio::time::Instant;

/// A client that only wanted to know the era has closed stdin within this; one that means it has declared itself by then.
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
    /// What the client declares, once it has.
    said: watch::Sender<Option<Declared>>,
    passes: bool,
    /// When the first frame came that needs upstreams.
    called: Option<Instant>,
    /// `None` once there is nothing more to find out.
    lines: Option<Lines<Vec<u8>>>,
}

/// What the doorbell rings.
pub(super) struct Bell(watch::Receiver<Heard>);

impl<R> Doorbell<R> {
    /// `passes`: upstreams are told of extensions that the gateway does not know.
    pub(super) fn new(stdin: R, said: watch::Sender<Option<Declared>>, passes: bool) -> (Self, Bell) {
        let (heard, bell) = watch::channel(Heard::Nothing);
        (
            Self { stdin, heard, said, passes, called: None, lines: Some(Lines::new(PROBE_BYTES_MAX, Vec::new())) },
            Bell(bell),
        )
    }

    fn hear(&mut self, bytes: &[u8]) {
        let Some(lines) = &mut self.lines else { return };
        lines.buffer().extend_from_slice(bytes);
        let mut heard = None;
        while let Some(line) = if bytes.is_empty() { lines.last() } else { lines.next_line() } {
            let (is_probe, declared) = match &line {
                Line::Frame(text) => read(Frame::parse(text).ok()),
                Line::Untaken { .. } => (false, None),
            };
            if let Some(mut declared) = declared.filter(|_| self.said.borrow().is_none()) {
                if !self.passes {
                    declared.beyond = declared.beyond.without_extensions();
                }
                self.said.send_replace(Some(declared));
            }
            if !is_probe {
                self.called.get_or_insert_with(Instant::now);
            }
            heard = Some(if self.called.is_some() { Heard::Caller } else { Heard::Probe });
        }
        if bytes.is_empty() && self.called.is_none() {
            heard = Some(Heard::End);
        }
        let is_late = self.called.is_some_and(|called| called.elapsed() >= PROBED_WITHIN);
        if heard == Some(Heard::End) || is_late || (self.called.is_some() && self.said.borrow().is_some()) {
            self.lines = None;
        }
        if let Some(heard) = heard {
            self.heard.send_if_modified(|known| std::mem::replace(known, heard) != heard);
        }
    }
}

/// Whether a frame only asks for our era, and what the client declares in it.
fn read(frame: Option<Frame>) -> (bool, Option<Declared>) {
    match frame {
        Some(Frame::Request { method: Method::Initialize, params, .. }) => {
            let asked = params.find("protocolVersion").and_then(json::unquote);
            let revision = asked.map_or(Revision::NEWEST_LEGACY, |asked| Revision::negotiate(&asked));
            (false, params.find("capabilities").map(|raw| Declared::parse(raw, revision)))
        }
        // Who only looks may not have said yet all that it can do.
        Some(Frame::Request { method: Method::Discover, params, .. }) => {
            (true, in_meta(&params).filter(|said| *said != Declared::default()))
        }
        Some(Frame::Request { params, .. } | Frame::Notification { params, .. }) => (false, in_meta(&params)),
        _ => (false, None),
    }
}

/// What a stateless client says in every request.
fn in_meta(params: &Object) -> Option<Declared> {
    let meta = Meta::parse(&params.share(Key::Meta)?).ok()?;
    Some(Declared::parse(&meta.capabilities?, Revision::NEWEST_MODERN))
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
    use crate::protocol::capabilities::Capabilities;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const DISCOVER: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\"}\n";
    const LIST: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n";

    /// What rings when a client writes these pieces, and then closes stdin or not.
    async fn rings(pieces: &[&[u8]], closes: bool) -> (bool, Duration) {
        let (mut client, stdin) = tokio::io::duplex(1 << 16);
        let (mut stdin, mut bell) = Doorbell::new(stdin, watch::Sender::new(None), true);
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

    /// What a client has said that it can be asked, once these pieces were read, so long after one another.
    async fn said(pieces: &[String], pause: Duration) -> Option<Capabilities> {
        let (mut client, stdin) = tokio::io::duplex(1 << 16);
        let said = watch::Sender::new(None);
        let (mut stdin, _bell) = Doorbell::new(stdin, said.clone(), true);
        let mut out = vec![0; 1 << 16];
        for piece in pieces {
            client.write_all(piece.as_bytes()).await.unwrap();
            assert_eq!(stdin.read(&mut out).await.unwrap(), piece.len());
            tokio::time::sleep(pause).await;
        }
        said.borrow().as_ref().map(|declared| declared.can)
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_frame_that_says_what_the_client_can_be_asked_counts() {
        let frame = |method: &str, params: &str| {
            format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}\",\"params\":{params}}}\n")
        };
        let modern = |method: &str, can: &str| {
            let meta = format!("{{\"_meta\":{{\"io.modelcontextprotocol/clientCapabilities\":{can}}}}}");
            frame(method, &meta)
        };
        let initialize = |date: &str, can: &str| {
            frame("initialize", &format!("{{\"protocolVersion\":\"{date}\",\"capabilities\":{can}}}"))
        };
        let (roots, elicits) = ("{\"roots\":{}}", "{\"elicitation\":{\"url\":{}}}");
        let soon = Duration::from_millis(1);
        assert_eq!(said(&[initialize("2025-11-25", roots)], soon).await, Some(Capabilities::ROOTS));
        assert_eq!(said(&[initialize("2025-06-18", elicits)], soon).await, Some(Capabilities::FORM));
        assert_eq!(
            said(&[initialize("2025-11-25", "{}"), modern("tools/list", roots)], soon).await,
            Some(Capabilities::NONE)
        );
        assert_eq!(said(&[modern("tools/list", elicits)], soon).await, Some(Capabilities::URL));
        assert_eq!(
            said(&[modern("server/discover", roots), modern("tools/list", elicits)], soon).await,
            Some(Capabilities::ROOTS)
        );
        // Who only looks may not have said yet all that it can do.
        let looks = [modern("server/discover", "{}"), initialize("2025-11-25", roots)];
        assert_eq!(said(&looks, Duration::from_secs(1)).await, Some(Capabilities::ROOTS));
        let late = [frame("ping", "{}"), modern("tools/list", roots)];
        assert_eq!(said(&late, soon).await, Some(Capabilities::ROOTS));
        assert_eq!(said(&[late[0].clone(), frame("ping", "{}"), late[1].clone()], PROBED_WITHIN).await, None);
    }
}
