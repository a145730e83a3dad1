//! HTTP+SSE (2024-11-05) as a pipe: every message comes on one stream of events, and each of ours is a POST to the address that the
//! stream's first event names. The stream is the connection: it ends, and all that is open ends with it.

use crate::health::{Cause, CauseCode};
use crate::memory::account::Kind;
use crate::protocol::frame::Method;
use crate::protocol::frame::message::Frame;
use crate::protocol::framing::lines::Line;
use crate::runtime::timer::late::within;
use crate::runtime::{Tasks, aside};
use crate::transport::events::LinkEvents;
use crate::transport::exchange::Lost;
use crate::transport::http::{EventStream, HttpSession};
use crate::transport::pipe::reader::{self, Sorter, Source};
use crate::transport::pipe::{Pipe, writer};
use bytes::Bytes;
use http::Uri;
use std::future::pending;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::AsyncWrite;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::sleep;
use tokio_util::sync::PollSemaphore;

/// So many events may come before the one that names the address.
const BEFORE_ENDPOINT: usize = 16;
/// So many POSTs are under way at once. A server may answer one only when its call is done.
const POSTS_MAX: usize = 256;
/// How often it is looked whether the call of a POST that is not answered has ended: then nobody waits for that any more.
const LOOK: Duration = Duration::from_secs(1);
/// How long what follows a message that changes what is meant by the next ones waits until that is taken: on another connection it
/// could overtake it.
const TAKEN_MAX: Duration = Duration::from_secs(10);

/// Opens the stream and learns where messages are posted. What it starts belongs to the level; the end of the level closes the pipe.
pub async fn open(
    http: &Arc<HttpSession>,
    (upstream, max): (&str, usize),
    inbox: Arc<dyn LinkEvents>,
    level: &Tasks,
) -> Result<Arc<Pipe>, Lost> {
    let mut stream = http.open_stream().await?;
    let endpoint = endpoint(&mut stream).await.map_err(Lost::Odd)?;
    let pipe = Pipe::new(inbox, level.clone());
    pipe.count_for(upstream);
    let (reading, ending) = (pipe.clone(), level.clone());
    level.spawn(async move {
        reader::until_over(&reading, &ending, read(&reading, stream, max, &endpoint.name)).await;
    });
    let target = Arc::new(Target { http: http.clone(), address: endpoint.address, pipe: pipe.clone() });
    let posts = Posts { target, level: level.clone(), room: room(), behind: None };
    let writing = pipe.clone();
    level.spawn_until_end(async move {
        if let Err(error) = writer::write(&writing, posts, pending()).await {
            writing.close(Cause::new(CauseCode::ConnectionLost, error.to_string()));
        }
    });
    Ok(pipe)
}

/// Where messages are posted.
struct Endpoint {
    /// As the event had it.
    name: Bytes,
    address: Uri,
}

/// Waits for the event that names the address.
async fn endpoint(stream: &mut EventStream) -> Result<Endpoint, Cause> {
    let mut events = 0;
    while events < BEFORE_ENDPOINT {
        match stream.next().await {
            Ok(Some(Ok(event))) if event.name == "endpoint" => {
                let address = stream.resolve(&event.data)?;
                return Ok(Endpoint { name: Bytes::copy_from_slice(&event.data), address });
            }
            Ok(Some(_)) => events += 1,
            Ok(None) => {}
            Err(why) => return Err(why.own(" before its `endpoint` event").advise(ADVICE)),
        }
    }
    Err(Cause::new(CauseCode::HandshakeInvalid, "its event stream has no `endpoint` event").advise(ADVICE))
}

const ADVICE: &str = "check that `url` is the address of an HTTP+SSE stream, often /sse; for Streamable HTTP, set `transport = \"http\"`";

/// Brings what comes to where it belongs; why nothing more does.
async fn read(pipe: &Arc<Pipe>, mut stream: EventStream, max: usize, endpoint: &Bytes) -> Cause {
    let mut sorter = Sorter::new(pipe, max, Source::Network);
    loop {
        let next = stream.next().await;
        if let Some(end) = stream.skipped() {
            sorter.line(Line::Untaken { why: end.why, head: end.head, tail: Some(end.tail) });
        }
        match next {
            Ok(None) => sorter.heard(),
            Ok(Some(Err(why))) => sorter.line(Line::Untaken { why, head: Bytes::new(), tail: None }),
            Ok(Some(Ok(event))) if event.name == "endpoint" => {
                // A server that names it again, as some do to keep the stream alive, has said nothing new.
                if event.data != endpoint {
                    pipe.inbox
                        .violated("endpoint_changed", &"a second `endpoint` event, with another address; ignored");
                }
            }
            Ok(Some(Ok(event))) if event.data.is_empty() => {}
            Ok(Some(Ok(event))) if event.name.is_empty() || event.name == "message" => {
                sorter.line(Line::Frame(event.data));
                if let Some(why) = sorter.foreign() {
                    return Cause::new(CauseCode::NotMcp, why);
                }
            }
            Ok(Some(Ok(_))) => {}
            Err(why) => return why,
        }
    }
}

fn room() -> PollSemaphore {
    PollSemaphore::new(Arc::new(Semaphore::new(POSTS_MAX)))
}

/// Where messages go.
struct Target {
    http: Arc<HttpSession>,
    address: Uri,
    pipe: Arc<Pipe>,
}

impl Target {
    /// Resolves when nobody waits for a request any more: it was answered on the stream, withdrawn or given up.
    async fn left(&self, id: u64) {
        while self.pipe.pending().get(id).is_some() {
            sleep(LOOK).await;
        }
    }

    /// Ends a message that is not posted.
    fn refuse(&self, id: Option<u64>, why: Cause) {
        match id {
            Some(id) => self.pipe.lose(id, Lost::Busy(why)),
            None => self.pipe.inbox.failed("post", why.code(), &why.full()),
        }
    }

    /// Posts one message. A request that was refused ends with the reason.
    async fn post(&self, frame: Bytes, id: Option<u64>) {
        let call = id.and_then(|id| self.pipe.pending().get(id).cloned());
        let identity = call.as_ref().and_then(|call| call.identity.as_deref());
        let Err(lost) = self.http.deliver(&self.address, frame, identity).await else { return };
        let gone = match &lost {
            Lost::Session(text) => Some(text.clone()),
            _ => None,
        };
        match id {
            Some(id) => self.pipe.lose(id, lost),
            None => self.pipe.inbox.failed("post", lost.text().code(), &lost.text().full()),
        }
        // The server knows this connection no more, though it keeps the stream open.
        if let Some(text) = gone {
            self.pipe.close(text);
        }
    }
}

/// Whether what follows such a message must not be taken before it. A server may answer the POST of any other request only when that
/// is done, and what cancels one, or tells of progress, means nothing for the next.
fn comes_first(frame: &Frame) -> bool {
    match frame {
        Frame::Notification { method, .. } => !matches!(method, Method::Cancelled | Method::Progress),
        Frame::Request { method, .. } => {
            matches!(method, Method::SetLevel | Method::ResourcesSubscribe | Method::ResourcesUnsubscribe)
        }
        Frame::Response { .. } => false,
    }
}

/// The way out, as the writer of a pipe has it: what is written is posted frame by frame, in this order.
struct Posts {
    target: Arc<Target>,
    level: Tasks,
    room: PollSemaphore,
    /// What the next frame waits for.
    behind: Option<oneshot::Receiver<()>>,
}

impl AsyncWrite for Posts {
    /// Takes one frame: of the next one nothing is taken while there is no room for it.
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if let Some(behind) = &mut self.behind {
            let _taken = ready!(Pin::new(behind).poll(cx));
            self.behind = None;
        }
        let Some(permit) = ready!(self.room.poll_acquire(cx)) else {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        };
        let end = memchr::memchr(b'\n', bytes).unwrap_or(bytes.len());
        let frame = Bytes::copy_from_slice(&bytes[..end]);
        let parsed = aside(frame.len(), || Frame::parse(&frame));
        let id = match &parsed {
            Ok(Frame::Request { id, .. }) => id.number(),
            _ => None,
        };
        let taken_bytes = (end + 1).min(bytes.len());
        // The outbox no longer counts a frame that was taken, and a server may leave many POSTs without an answer.
        let charge = match self.target.pipe.inbox.budget().charge(Kind::Queue, frame.len()) {
            Ok(charge) => charge,
            Err(spent) => {
                self.target.refuse(id, Cause::new(CauseCode::MemoryFull, spent.to_string()));
                return Poll::Ready(Ok(taken_bytes));
            }
        };
        let (done, taken) = oneshot::channel::<()>();
        if parsed.is_ok_and(|frame| comes_first(&frame)) {
            self.behind = Some(taken);
        }
        let target = self.target.clone();
        self.level.spawn_until_end(async move {
            let _kept = (permit, charge);
            let posting = target.post(frame, id);
            let Some(id) = id else {
                if within(TAKEN_MAX, posting).await.is_err() {
                    let said = format!("a message was not accepted within {} s", TAKEN_MAX.as_secs());
                    target.pipe.inbox.failed("post", CauseCode::TimedOut, &said);
                }
                return drop(done);
            };
            // A request is waited for longer, and what follows it is not held up by that.
            let let_on = async {
                sleep(TAKEN_MAX).await;
                drop(done);
                pending().await
            };
            tokio::select! {
                biased;
                () = posting => {}
                () = target.left(id) => {}
                () = let_on => {}
            }
        });
        Poll::Ready(Ok(taken_bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cancels_a_request_or_tells_of_progress_holds_up_nothing() {
        let first = |method: &str, id: &str| {
            let text = format!(r#"{{"jsonrpc":"2.0",{id}"method":"{method}","params":{{}}}}"#);
            comes_first(&Frame::parse(&Bytes::from(text)).unwrap())
        };
        assert!(first("notifications/initialized", "") && first("notifications/roots/list_changed", ""));
        assert!(first("logging/setLevel", "\"id\":1,"));
        assert!(!first("notifications/cancelled", "") && !first("notifications/progress", ""));
        assert!(!first("tools/call", "\"id\":1,"));
    }
}
