//! WebSocket (RFC 6455) as a pipe: every message is one text message of the subprotocol `mcp`, either way, without compression. The
//! connection ends, and all that is open ends with it; the code of its close frame decides when it is opened anew.

// Answers that are no frames.
pub(crate) mod bare;
// The way out: frames, pongs, the close frame.
mod output;

use crate::config::Dialect;
use crate::health::{Cause, CauseCode};
use crate::memory::Gather;
use crate::memory::account::Kind;
use crate::protocol::frame::message::{BATCH_MAX, Frame};
use crate::protocol::framing::lines::Line;
use crate::protocol::framing::websocket::{Fault, Message, Messages};
use crate::runtime::timer::Pace;
use crate::runtime::watched::{Credit, linger};
use crate::runtime::{FairShare, Tasks, aside};
use crate::secrets::mask;
use crate::secrets::printable;
use crate::transport::events::LinkEvents;
use crate::transport::exchange::Lost;
use crate::transport::http::HttpSession;
use crate::transport::pipe::reader::{self, Sorter, Source};
use crate::transport::pipe::{Pipe, writer};
use bytes::Bytes;
use output::{Controls, Frames};
use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

/// The subprotocol of MCP.
const SUBPROTOCOL: &str = "mcp";
/// So much of the reason in a close frame is told on.
const REASON_CHARS: usize = 123;
/// The longest pause within a message.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// The code of a connection whose other side begins a message and does not go on.
const TOO_SLOW: u16 = 1008;
/// The code of one whose other side sends too many frames that ask for nothing.
const TOO_MANY: u16 = 1008;
/// So many of those are earned with each message.
const WITH_A_MESSAGE: u64 = 4;

/// Connects. What it starts belongs to the level; the end of the level closes the pipe.
pub async fn open(
    http: &Arc<HttpSession>,
    dialect: Dialect,
    (upstream, max): (&str, usize),
    inbox: Arc<dyn LinkEvents>,
    level: &Tasks,
) -> Result<Arc<Pipe>, Lost> {
    let subprotocol = (dialect != Dialect::Bare).then_some(SUBPROTOCOL);
    let stream = http.upgrade(subprotocol).await?;
    let pipe = match subprotocol {
        Some(_) => Pipe::new(inbox, level.clone()),
        None => Pipe::bare(inbox, level.clone()),
    };
    pipe.count_for(upstream);
    run(stream, &pipe, max, level);
    Ok(pipe)
}

/// Reads and writes a connection that has become a WebSocket, until the pipe closes.
fn run(stream: impl AsyncRead + AsyncWrite + Send + 'static, pipe: &Arc<Pipe>, max: usize, level: &Tasks) {
    let (input, output) = tokio::io::split(stream);
    let controls = Controls::default();
    let mut frames = Frames::new(output, controls.clone());
    let (reading, ending) = (pipe.clone(), level.clone());
    level.spawn(async move {
        let mut input = input;
        reader::until_over(&reading, &ending, read(&reading, &mut input, max, &controls)).await;
        // What is closed with bytes unread is reset, and the close frame is lost.
        linger(&mut input).await;
    });
    let writing = pipe.clone();
    level.spawn(async move {
        match writer::write(&writing, &mut frames, pending()).await {
            // Whoever closed it is told so.
            Ok(()) => frames.finish().await,
            // The reader knows better why, if it hears of it at all.
            Err(error) => tracing::debug!(%error, "cannot write to the WebSocket"),
        }
    });
}

/// Brings what comes to where it belongs; why nothing more does.
async fn read(pipe: &Arc<Pipe>, input: &mut (impl AsyncRead + Unpin), max: usize, controls: &Controls) -> Cause {
    let mut messages = Messages::of_server(max, Gather::new(pipe.inbox.budget(), Kind::Line, max));
    let mut sorter = Sorter::new(pipe, max, Source::Network);
    let (mut stretch, mut pace, credit) = (FairShare::default(), Pace::new(PAUSE_MAX), Credit::default());
    loop {
        let count = match more(&mut messages, &mut pace, input).await {
            Some(Ok(count @ 1..)) => count,
            Some(Ok(0)) => return lost("it closed the connection without a close frame"),
            Some(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return lost("it closed the connection without a close frame");
            }
            Some(Err(error)) => return lost(format!("the connection broke: {error}")),
            None => {
                controls.close(Some(TOO_SLOW), "a message did not go on, or came too slowly");
                let said = "a message that it began did not go on, or came more slowly than 16 KiB/s";
                return Cause::new(CauseCode::ResponseIncomplete, said);
            }
        };
        sorter.heard();
        loop {
            match messages.next_message() {
                Ok(None) => break,
                Ok(Some(message)) => {
                    if let Some(why) = measured(&message, &credit) {
                        pipe.inbox.violated("too_many_frames", &why.full());
                        controls.close(Some(TOO_MANY), "too many frames that ask for nothing");
                        return why;
                    }
                    if let Some(why) = take(pipe, &mut sorter, message, controls) {
                        return why;
                    }
                }
                Err(fault) => {
                    controls.close(Some(fault.code()), &refusal(fault));
                    return broken(fault, max);
                }
            }
            // Its bytes count as they are read.
            stretch.message(0).await;
            if let Some(why) = sorter.foreign() {
                return Cause::new(CauseCode::NotMcp, why);
            }
        }
        stretch.read(count).await;
    }
}

/// Reads more; `None` where a message was begun and does not go on.
async fn more(
    messages: &mut Messages<Gather>,
    pace: &mut Pace,
    input: &mut (impl AsyncRead + Unpin),
) -> Option<io::Result<usize>> {
    loop {
        let begun = messages.begun();
        let reading = async {
            match messages.reading() {
                (buffer, None) => Some(input.read_buf(buffer).await),
                (buffer, Some(gather)) => tokio::select! {
                    biased;
                    () = gather.lost() => None,
                    read = input.read_buf(buffer) => Some(read),
                },
            }
        };
        match pace.keep(begun, reading).await.ok()? {
            Some(read) => return Some(read),
            None => messages.give_up(),
        }
    }
}

/// Whether no more of what asks for nothing comes than may: why none follows, where it does.
fn measured(message: &Message, credit: &Credit) -> Option<Cause> {
    let bytes = match message {
        Message::Ping(_) | Message::Pong => 0,
        Message::Blank(bytes) => *bytes,
        Message::Text(_) | Message::Untaken { .. } => {
            credit.earn(WITH_A_MESSAGE, 0);
            return None;
        }
        Message::Part | Message::Close(_) => return None,
    };
    let said = "it sent too many WebSocket frames that ask for nothing: pings, pongs, blank messages, empty pieces";
    (!credit.spend(bytes)).then(|| Cause::new(CauseCode::ResponseInvalid, said))
}

/// Takes a message; why none follows.
fn take(pipe: &Pipe, sorter: &mut Sorter<'_>, message: Message, controls: &Controls) -> Option<Cause> {
    match message {
        Message::Text(text) if pipe.is_bare() && Frame::is_batch(&text) => {
            match aside(text.len(), || Frame::split(&text, BATCH_MAX)) {
                Ok(all) => all.iter().for_each(|text| answered(pipe, sorter, text)),
                Err(_) => sorter.line(Line::Frame(text)),
            }
        }
        Message::Text(text) if pipe.is_bare() => answered(pipe, sorter, &text),
        Message::Text(text) => sorter.line(Line::Frame(text)),
        Message::Untaken { why, head, tail } => sorter.line(Line::Untaken { why, head, tail: Some(tail) }),
        Message::Ping(payload) => {
            if !controls.pinged(&payload) {
                let why = "it sends pings and does not read the answers to them";
                return Some(Cause::new(CauseCode::InputNotRead, why));
            }
            pipe.filled.notify_one();
        }
        Message::Part | Message::Blank(_) | Message::Pong => {}
        Message::Close(frame) => {
            controls.close(frame.as_ref().map(|(code, _)| *code), "");
            return Some(closed(frame.as_ref().map(|(code, reason)| (*code, &reason[..]))));
        }
    }
    None
}

// Takes an answer in the bare dialect, or one of an array of them.
fn answered(pipe: &Pipe, sorter: &mut Sorter<'_>, text: &Bytes) {
    match aside(text.len(), || bare::answer(text).ok_or_else(|| bare::unmatched(text))) {
        Ok(frame) => sorter.line(Line::Frame(frame)),
        Err(why) => why.into_iter().for_each(|why| pipe.inbox.violated("unknown_id", &why)),
    }
}

fn lost(why: impl Into<String>) -> Cause {
    Cause::new(CauseCode::ConnectionLost, why)
}

/// What the other side is told of what it did wrong.
fn refusal(fault: Fault) -> String {
    match fault {
        // The limit is told with the key of another listener.
        Fault::TooLong => "a message that is too long".to_owned(),
        fault => fault.to_string(),
    }
}

/// Why a connection that broke the rules has ended.
fn broken(fault: Fault, max: usize) -> Cause {
    let said = match fault {
        Fault::TooLong => format!("a message of more than {max} bytes, the limit set by `max_response`"),
        Fault::Binary => "it sent a binary message; MCP wants text messages".to_owned(),
        Fault::CloseCode(code) => {
            let said = format!("it closed the WebSocket with {code}, which is not a valid close code");
            return Cause::new(CauseCode::WebSocketClosed(code), said);
        }
        fault => format!("it broke the WebSocket protocol: {fault}"),
    };
    Cause::new(CauseCode::ResponseInvalid, said)
}

/// What a close frame says.
fn closed(frame: Option<(u16, &[u8])>) -> Cause {
    let Some((code, reason)) = frame else { return lost("it closed the WebSocket") };
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
        4401 => ("unauthorized", "set its credentials in `auth`, or in `headers`"),
        4403 => ("forbidden", "check the credentials in `headers` and their permissions"),
        _ => ("", ""),
    };
    let meaning = if meaning.is_empty() { String::new() } else { format!(" ({meaning})") };
    let cause = Cause::new(CauseCode::WebSocketClosed(code), format!("it closed the WebSocket with {code}{meaning}"));
    let reason: String = mask::masked(&String::from_utf8_lossy(reason)).chars().take(REASON_CHARS).collect();
    let reason = if reason.is_empty() { reason } else { format!(": {}", printable(&reason)) };
    cause.foreign(&reason).advise(advice)
}

#[cfg(test)]
mod tests;
