//! WebSocket (RFC 6455) as a pipe: every message is one text message of the subprotocol `mcp`, either way, without compression. The
//! connection ends, and all that is open ends with it; the code of its close frame decides when it is opened anew.

use crate::health::{Cause, CauseCode};
use crate::memory::Gather;
use crate::memory::account::Kind;
use crate::protocol::framing::Untaken;
use crate::protocol::framing::lines::Line;
use crate::runtime::timer::late::within;
use crate::runtime::{FairShare, Tasks};
use crate::secrets::mask;
use crate::upstream::transport::events::LinkEvents;
use crate::upstream::transport::exchange::Lost;
use crate::upstream::transport::http::HttpSession;
use crate::upstream::transport::pipe::reader::{Sorter, Source};
use crate::upstream::transport::pipe::{Pipe, writer};
use crate::upstream::transport::stdio::printable;
use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{Sink, SinkExt, StreamExt};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::CapacityError;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

/// What is read at once; each connection has that much from its beginning.
const READ_BYTES: usize = 16 * 1024;
/// A larger message is kept in memory that is counted.
const COUNTED_FROM: usize = 128 * 1024;
/// How much of a message that is not taken is looked at for its id, at either end.
const EDGE_BYTES: usize = 256;
/// How long the close frame may take to leave.
const CLOSE_MAX: Duration = Duration::from_secs(1);
/// So much of the reason in a close frame is told on.
const REASON_CHARS: usize = 123;

/// Connects. What it starts belongs to the level; the end of the level closes the pipe.
pub(crate) async fn open(
    http: &Arc<HttpSession>,
    (upstream, max): (&str, usize),
    inbox: Arc<dyn LinkEvents>,
    level: &Tasks,
) -> Result<Arc<Pipe>, Lost> {
    let stream = http.upgrade().await?;
    let pipe = Pipe::new(inbox, level.clone());
    pipe.count_for(upstream);
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BYTES)
        // What the connection does not take stays in the queue, where it can be taken back.
        .write_buffer_size(0)
        .max_message_size(Some(max))
        .max_frame_size(Some(max));
    let socket = WebSocketStream::from_raw_socket(stream, Role::Client, Some(config)).await;
    let (out, messages) = socket.split();
    let (reading, ending) = (pipe.clone(), level.clone());
    level.spawn(async move {
        let why = tokio::select! {
            biased;
            _ = reading.closed() => return,
            () = ending.ending() => Cause::new(CauseCode::StoppedByOrder, "stopped on request"),
            why = read(&reading, messages, max) => why,
        };
        reading.close(why);
    });
    let writing = pipe.clone();
    level.spawn(async move {
        let mut frames = Frames(out);
        match writer::write(&writing, &mut frames).await {
            // Whoever closed it is told so, where that is not the other side.
            Ok(()) => _ = within(CLOSE_MAX, frames.0.close()).await,
            // The reader knows better why, if it hears of it at all.
            Err(error) => tracing::debug!(%error, "cannot write to the WebSocket"),
        }
    });
    Ok(pipe)
}

/// Brings what comes to where it belongs; why nothing more does.
async fn read<S>(pipe: &Arc<Pipe>, mut messages: SplitStream<WebSocketStream<S>>, max: usize) -> Cause
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut sorter = Sorter::new(pipe, max, Source::Network);
    let mut stretch = FairShare::default();
    loop {
        let message = match messages.next().await {
            Some(Ok(message)) => message,
            Some(Err(error)) => return broken(&error, max),
            None => return lost("it closed the connection without a close frame"),
        };
        sorter.heard();
        match message {
            Message::Text(text) => {
                let text = Bytes::from(text);
                let bytes = text.len();
                let text = text.slice_ref(text.trim_ascii());
                if !text.is_empty() {
                    sorter.line(counted(pipe, text, max));
                }
                stretch.message(bytes).await;
            }
            Message::Binary(_) => pipe.inbox.violated("binary_message", &"a binary message; MCP wants text messages"),
            // Pings are answered where they are read.
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            Message::Close(frame) => return closed(frame.as_ref()),
        }
        if let Some(why) = sorter.foreign() {
            return Cause::new(CauseCode::NotMcp, why);
        }
    }
}

/// A message, which is counted where it is large.
fn counted(pipe: &Pipe, text: Bytes, max: usize) -> Line {
    if text.len() < COUNTED_FROM {
        return Line::Frame(text);
    }
    let mut gather = Gather::new(pipe.inbox.budget(), Kind::Line, max);
    match gather.push(&text) {
        Ok(()) => Line::Frame(gather.take()),
        Err(_) => {
            let head = Bytes::copy_from_slice(&text[..EDGE_BYTES]);
            let tail = Bytes::copy_from_slice(&text[text.len() - EDGE_BYTES..]);
            Line::Untaken { why: Untaken::NoRoom, head, tail: Some(tail) }
        }
    }
}

fn lost(why: impl Into<String>) -> Cause {
    Cause::new(CauseCode::ConnectionLost, why)
}

/// Why reading failed.
fn broken(error: &Error, max: usize) -> Cause {
    match error {
        Error::Capacity(CapacityError::MessageTooLong { .. }) => {
            let said = format!("a message of more than {max} bytes, the limit set by `max_response`");
            Cause::new(CauseCode::ResponseInvalid, said)
        }
        Error::Io(error) => lost(format!("the connection broke: {error}")),
        error => Cause::new(CauseCode::ResponseInvalid, format!("it broke the WebSocket protocol: {error}")),
    }
}

/// What a close frame says.
fn closed(frame: Option<&CloseFrame>) -> Cause {
    let Some(frame) = frame else { return lost("it closed the WebSocket") };
    let code = u16::from(frame.code);
    let (meaning, advice) = match code {
        1000 => ("normal closure", ""),
        1001 => ("going away", ""),
        1002 => ("protocol error", ""),
        1003 => ("unsupported data", "check that the server speaks MCP in text messages"),
        1007 => ("invalid data", ""),
        1008 => ("policy violation", "check the credentials in `headers` and their permissions"),
        1009 => ("message too big", "raise the server's limit of message sizes"),
        1011 => ("internal error", "see the server's log"),
        1012 => ("service restart", ""),
        1013 => ("try again later", ""),
        4401 => ("unauthorized", "set its credentials in `headers`, such as `Authorization`"),
        4403 => ("forbidden", "check the credentials in `headers` and their permissions"),
        _ => ("", ""),
    };
    let meaning = if meaning.is_empty() { String::new() } else { format!(" ({meaning})") };
    let cause = Cause::new(CauseCode::WebSocketClosed(code), format!("it closed the WebSocket with {code}{meaning}"));
    let reason: String = mask::masked(&frame.reason).chars().take(REASON_CHARS).collect();
    let reason = if reason.is_empty() { reason } else { format!(": {}", printable(&reason)) };
    cause.foreign(&reason).advise(advice)
}

/// The way out, as the writer of a pipe has it: each line is one text message.
struct Frames<S>(SplitSink<WebSocketStream<S>, Message>);

fn failed(error: Error) -> io::Error {
    match error {
        Error::Io(error) => error,
        error => io::Error::other(error),
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Frames<S> {
    /// Takes one message: of the next one nothing is taken while there is no room for it.
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(Pin::new(&mut self.0).poll_ready(cx)).map_err(failed)?;
        let end = memchr::memchr(b'\n', bytes).unwrap_or(bytes.len());
        // JSON text is UTF-8; what is not was no frame when it came.
        let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
        Pin::new(&mut self.0).start_send(Message::text(text)).map_err(failed)?;
        Poll::Ready(Ok((end + 1).min(bytes.len())))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx).map_err(failed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_close(cx).map_err(failed)
    }
}
