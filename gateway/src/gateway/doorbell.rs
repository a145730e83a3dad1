//! Listens at stdin for the first frame that means it, since hosts start a throw-away process to see which era we speak; and for
//! what the client declares.

use crate::protocol::capabilities::beyond::Declared;
use crate::protocol::frame::Method;
use crate::protocol::frame::message::Frame;
use crate::protocol::framing::lines::{Line, Lines};
use crate::protocol::json;
use crate::protocol::meta::Meta;
use crate::protocol::revision::{Era, Revision};
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
    /// Something that needs upstreams, from a client of this era.
    Caller(Era),
    /// The end, and nothing that needs them.
    End,
}

/// Stdin, heard along.
pub(super) struct Doorbell<R> {
    stdin: R,
    heard: watch::Sender<Heard>,
    ears: Ears,
    /// For whom it was recalled last what was offered.
    recalled: Option<(Era, Declared)>,
    /// When the first frame came that needs upstreams, and its era.
    called: Option<(Instant, Era)>,
    /// `None` once there is nothing more to find out.
    lines: Option<Lines<Vec<u8>>>,
}

/// What recalls for a client of an era, which declares this, what was last offered to such a one.
type Recall = Box<dyn Fn(Era, &Declared) + Send>;

/// What is done with what the client declares.
pub(super) struct Ears {
    /// Told once.
    pub(super) said: watch::Sender<Option<Declared>>,
    /// Upstreams are told of extensions that the gateway does not know.
    pub(super) passes: bool,
    /// Told before the frame goes on that says it: what a client of this era is shown first is what was last offered to one that
    /// declares this.
    pub(super) recall: Recall,
}

/// What the doorbell rings.
pub(super) struct Bell(watch::Receiver<Heard>);

impl<R> Doorbell<R> {
    pub(super) fn new(stdin: R, ears: Ears) -> (Self, Bell) {
        let (heard, bell) = watch::channel(Heard::Nothing);
        let lines = Some(Lines::new(PROBE_BYTES_MAX, Vec::new()));
        (Self { stdin, heard, ears, recalled: None, called: None, lines }, Bell(bell))
    }

    fn hear(&mut self, bytes: &[u8]) {
        let Some(mut lines) = self.lines.take() else { return };
        lines.buffer().extend_from_slice(bytes);
        let mut heard = None;
        while let Some(line) = if bytes.is_empty() { lines.last() } else { lines.next_line() } {
            let (is_probe, era, declared) = match &line {
                Line::Frame(text) => read(Frame::parse(text).ok()),
                Line::Untaken { .. } => (false, Era::Legacy, None),
            };
            if !is_probe {
                self.called.get_or_insert_with(|| (Instant::now(), era));
            }
            self.declared(declared, is_probe);
            heard = Some(self.called.map_or(Heard::Probe, |(_, era)| Heard::Caller(era)));
        }
        if bytes.is_empty() && self.called.is_none() {
            heard = Some(Heard::End);
        }
        let is_late = self.called.is_some_and(|(called, _)| called.elapsed() >= PROBED_WITHIN);
        let is_all =
            heard == Some(Heard::End) || is_late || (self.called.is_some() && self.ears.said.borrow().is_some());
        self.lines = (!is_all).then_some(lines);
        if let Some(heard) = heard {
            self.heard.send_if_modified(|known| std::mem::replace(known, heard) != heard);
        }
    }
}

impl<R> Doorbell<R> {
    /// Takes what a frame declares, which waits for what follows of it.
    fn declared(&mut self, mut declared: Option<Declared>, is_probe: bool) {
        if let Some(declared) = &mut declared {
            if !self.ears.passes {
                declared.beyond = std::mem::take(&mut declared.beyond).without_extensions();
            }
            // Who only looks may not have said yet all that it can do.
            let is_final = !is_probe || *declared != Declared::default();
            if is_final && self.ears.said.borrow().is_none() {
                self.ears.said.send_replace(Some(declared.clone()));
            }
        }
        let Some(declared) = self.ears.said.borrow().clone().or(declared) else { return };
        let whom = (self.called.map_or(Era::Modern, |(_, era)| era), declared);
        if self.recalled.as_ref() != Some(&whom) {
            (self.ears.recall)(whom.0, &whom.1);
            self.recalled = Some(whom);
        }
    }
}

/// Whether a frame only asks for our era, which era it is of, and what the client declares in it.
fn read(frame: Option<Frame>) -> (bool, Era, Option<Declared>) {
    match frame {
        Some(Frame::Request { method: Method::Initialize, params, .. }) => {
            let asked = params.find("protocolVersion").and_then(json::unquote);
            let revision = asked.map_or(Revision::NEWEST_LEGACY, |asked| Revision::negotiate(&asked));
            (false, Era::Legacy, params.find("capabilities").map(|raw| Declared::parse(raw, revision)))
        }
        Some(Frame::Request { method: Method::Discover, params, .. }) => (true, Era::Modern, in_meta(&params).1),
        Some(Frame::Request { params, .. } | Frame::Notification { params, .. }) => {
            let (era, declared) = in_meta(&params);
            (false, era, declared)
        }
        _ => (false, Era::Legacy, None),
    }
}

/// The era of a request, which a stateless client says in every one, and what it declares.
fn in_meta(params: &Object) -> (Era, Option<Declared>) {
    let Some(meta) = params.share(Key::Meta).and_then(|raw| Meta::parse(&raw).ok()) else { return (Era::Legacy, None) };
    let era = if meta.revision.is_some() { Era::Modern } else { Era::Legacy };
    (era, meta.capabilities.map(|raw| Declared::parse(&raw, Revision::NEWEST_MODERN)))
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
    /// Resolves with the era of the client when the upstreams are needed, or with `None` when they never will be.
    pub(super) async fn rings(&mut self) -> Option<Era> {
        loop {
            let heard = *self.0.borrow_and_update();
            match heard {
                Heard::Caller(era) => return Some(era),
                Heard::End => return None,
                Heard::Probe => match tokio::time::timeout(PROBED_WITHIN, self.0.changed()).await {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) => return None,
                    Err(_) => return Some(Era::Modern),
                },
                Heard::Nothing => {
                    if self.0.changed().await.is_err() {
                        return None;
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

    const LIST_OF_A_STATELESS_CLIENT: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}}}\n";

    fn ears(said: &watch::Sender<Option<Declared>>, recall: impl Fn(Era, &Declared) + Send + 'static) -> Ears {
        Ears { said: said.clone(), passes: true, recall: Box::new(recall) }
    }

    /// What rings when a client writes these pieces, and then closes stdin or not.
    async fn rings(pieces: &[&[u8]], closes: bool) -> (Option<Era>, Duration) {
        let (mut client, stdin) = tokio::io::duplex(1 << 16);
        let (mut stdin, mut bell) = Doorbell::new(stdin, ears(&watch::Sender::new(None), |_, _| {}));
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
        assert_eq!(rings(&[DISCOVER], true).await, (None, Duration::ZERO));
        assert_eq!(rings(&[], true).await, (None, Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_stays_or_asks_does() {
        assert_eq!(rings(&[DISCOVER], false).await, (Some(Era::Modern), PROBED_WITHIN));
        assert_eq!(rings(&[LIST], true).await, (Some(Era::Legacy), Duration::ZERO));
        assert_eq!(rings(&[DISCOVER, &LIST[..9], &LIST[9..]], true).await, (Some(Era::Legacy), Duration::ZERO));
        assert_eq!(
            rings(&[&LIST[..LIST.len() - 1]], true).await,
            (Some(Era::Legacy), Duration::ZERO),
            "the last line needs no end"
        );
        assert_eq!(rings(&[b"nonsense\n"], true).await, (Some(Era::Legacy), Duration::ZERO));
        let stateless = LIST_OF_A_STATELESS_CLIENT;
        assert_eq!(rings(&[stateless, LIST], true).await, (Some(Era::Modern), Duration::ZERO), "the first one counts");
    }

    /// What a client has said that it can be asked, once these pieces were read, so long after one another.
    async fn said(pieces: &[String], pause: Duration) -> Option<Capabilities> {
        let (mut client, stdin) = tokio::io::duplex(1 << 16);
        let said = watch::Sender::new(None);
        let (mut stdin, _bell) = Doorbell::new(stdin, ears(&said, |_, _| {}));
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

    #[tokio::test]
    async fn what_was_offered_is_recalled_before_the_frame_goes_on_that_says_for_whom() {
        let recalled = async |pieces: &[&str]| {
            let (mut client, stdin) = tokio::io::duplex(1 << 16);
            let (tell, told) = std::sync::mpsc::channel();
            let ears = ears(&watch::Sender::new(None), move |era, declared| {
                tell.send((era, declared.can)).unwrap();
            });
            let (mut stdin, _bell) = Doorbell::new(stdin, ears);
            let mut all = Vec::new();
            for piece in pieces {
                client.write_all(piece.as_bytes()).await.unwrap();
                assert_eq!(stdin.read(&mut vec![0; 1 << 16]).await.unwrap(), piece.len());
                all.push(told.try_iter().collect::<Vec<_>>());
            }
            all
        };
        let initialize = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"roots\":{}}}}\n";
        let looks = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\",\"params\":{\"_meta\":{\"io.modelcontextprotocol/clientCapabilities\":{}}}}\n";
        let (roots, none) = ((Era::Legacy, Capabilities::ROOTS), (Era::Modern, Capabilities::NONE));
        assert_eq!(recalled(&[initialize, initialize]).await, [vec![roots], vec![]]);
        assert_eq!(recalled(&[looks, looks, initialize]).await, [vec![none], vec![], vec![roots]]);
    }
}
