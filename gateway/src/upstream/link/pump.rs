//! The reader and the writer of a pipe. The reader never waits for anyone; the writer takes all that is queued at once.

use super::asker::Asker;
use super::inbox::{Asked, Inbox};
use super::pipe::Pipe;
use super::slot::{Arrival, Kept, Lost};
use crate::call::LogLevel;
use crate::lifecycle::Stretch;
use crate::protocol::frame::{Body, Frame, FrameFault, Id};
use crate::protocol::lines::{Line, Lines};
use crate::protocol::object::Key;
use crate::protocol::{Method, Object, json, meta};
use bytes::Bytes;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// So many lines that are no frames, and none that is: whatever it is, it does not speak MCP.
const GARBAGE_MAX: u32 = 1000;
/// So much of a line that is no frame is told on.
const EXCERPT_BYTES: usize = 80;
/// A write buffer that grew beyond this is not kept.
const KEEP_BYTES: usize = 1024 * 1024;

/// Writes what is queued until the pipe closes; the error of a write that failed.
pub(crate) async fn write(pipe: &Pipe, mut output: impl AsyncWrite + Unpin) -> std::io::Result<()> {
    let mut buffer = Vec::new();
    loop {
        let Some(mut queued) = pipe.take(std::mem::take(&mut buffer)) else { return Ok(()) };
        if queued.is_empty() {
            buffer = queued;
            tokio::select! {
                () = pipe.filled.notified() => continue,
                _ = pipe.closed() => return Ok(()),
            }
        }
        tokio::select! {
            biased;
            written = async { output.write_all(&queued).await?; output.flush().await } => written?,
            _ = pipe.closed() => return Ok(()),
        }
        queued.clear();
        if queued.capacity() <= KEEP_BYTES {
            buffer = queued;
        }
    }
}

/// How reading a pipe ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReadEnd {
    /// The other side closed it.
    Eof,
    /// Reading failed.
    Failed(String),
    /// What comes is not MCP: nothing more is read.
    NotMcp(String),
}

/// Reads until the other side closes; every frame goes where it belongs.
pub(crate) async fn read(pipe: &Arc<Pipe>, mut input: impl AsyncRead + Unpin, max: usize) -> ReadEnd {
    let mut lines = Lines::new(max);
    let mut sorter = Sorter { pipe, good: 0, bad: 0, is_echo: false, is_over: false };
    let mut is_new = true;
    let mut stretch = Stretch::default();
    loop {
        let count = match input.read_buf(lines.buffer()).await {
            Ok(0) => {
                if let Some(line) = lines.last() {
                    sorter.is_over = true;
                    sorter.line(line, max);
                }
                return ReadEnd::Eof;
            }
            Ok(count) => {
                pipe.pulse.beat();
                if std::mem::take(&mut is_new) {
                    pipe.hears();
                }
                count
            }
            Err(error) => return ReadEnd::Failed(format!("its stdout cannot be read: {error}")),
        };
        while let Some(line) = lines.next_line() {
            sorter.line(line, max);
            // Its bytes count as they are read.
            stretch.message(0).await;
            if sorter.is_echo {
                return ReadEnd::NotMcp("it sends back what it is sent, as `cat` does: it is no MCP server".to_owned());
            }
            if sorter.good == 0 && sorter.bad >= GARBAGE_MAX {
                return ReadEnd::NotMcp(format!(
                    "it wrote {GARBAGE_MAX} lines to stdout that are not MCP, and none that is"
                ));
            }
        }
        stretch.read(count).await;
    }
}

/// Brings frames to where they belong.
struct Sorter<'a> {
    pipe: &'a Arc<Pipe>,
    good: u64,
    bad: u32,
    /// The first message was our own first one.
    is_echo: bool,
    /// What comes now was perhaps cut short by the end of the stream.
    is_over: bool,
}

impl Sorter<'_> {
    fn line(&mut self, line: Line, max: usize) {
        match line {
            Line::Frame(text) if Frame::is_batch(&text) => match Frame::split(&text) {
                Ok(parts) => parts.into_iter().for_each(|part| self.frame(part)),
                Err(fault) => self.garbage(&text, &fault),
            },
            Line::Frame(text) => self.frame(text),
            Line::TooLong { head, tail } => {
                let why = format!("a line of more than {max} bytes, the limit set by `max_response`");
                self.inbox().violated("line_too_long", &why);
                self.give_up(answered_id(&head, &tail), &why);
            }
        }
    }

    fn frame(&mut self, text: Bytes) {
        match Frame::parse(&text) {
            Ok(frame) => {
                if self.good == 0 {
                    self.pipe.noise.is_over();
                }
                self.good += 1;
                let is_ours = matches!(frame, Frame::Request { method: Method::Initialize | Method::Discover, .. });
                match self.good == 1 && is_ours {
                    // An answer to it would come back, too, and be taken for its own.
                    true => self.is_echo = true,
                    false => self.sort(frame),
                }
            }
            Err(fault) => self.garbage(&text, &fault),
        }
    }

    fn sort(&self, frame: Frame) {
        match frame {
            Frame::Response { id: Some(id), body } => self.response(&id, body),
            Frame::Response { id: None, body } => self.inbox().violated("response_without_id", &summary(&body)),
            Frame::Notification { method: Method::Progress, params } => self.progress(params),
            Frame::Notification { method: Method::Message, params } => self.log(params),
            Frame::Notification { method: Method::Acknowledged, params } => {
                self.of_listen_call(params, Arrival::Acknowledged)
            }
            Frame::Notification { method: Method::TaskChanged, params } => self.of_listen_call(params, Arrival::Task),
            Frame::Notification { method: Method::Cancelled, params } if self.pipe.is_modern() => self.ended(&params),
            Frame::Notification { method: Method::Cancelled, params } => self.pipe.desk().withdrawn(&params),
            Frame::Notification { method, params } => self.inbox().notified(method, params),
            Frame::Request { id, method, params } => {
                self.inbox().asked(Asked { id, method, params, on: None }, self.pipe.clone());
            }
        }
    }

    fn response(&self, id: &Id, body: Body) {
        let Some(number) = id.number() else {
            return self.inbox().violated("unknown_id", &"an answer to an id that was never ours");
        };
        let mut pending = self.pipe.pending();
        let slot = pending.remove(number);
        let late = pending.was_ours(number);
        drop(pending);
        match slot {
            Some(slot) => {
                // What it asked of this call it no longer needs: that is over before the call is.
                self.pipe.left(&slot);
                self.pipe.made.answered(number, &slot, &body);
                slot.finish(Arrival::Response(body));
            }
            None if late => self.inbox().violated("late_answer", &"an answer that came late, or twice"),
            None => self.inbox().violated("unknown_id", &"an answer to an id that was never ours"),
        }
    }

    fn progress(&self, params: Object) {
        let slot = params.get(Key::ProgressToken).and_then(number).and_then(|id| self.pipe.pending().get(id).cloned());
        let Some(slot) = slot else {
            if !self.pipe.made.progressed(self.inbox(), params) {
                self.inbox().violated("unknown_token", &"progress of a request that is not in flight");
            }
            return;
        };
        if slot.push(Arrival::Progress(params)) != Kept::Yes {
            self.inbox().violated("progress_dropped", &"progress that was not asked for, not more, or too much");
        }
    }

    /// On a pipe nothing says which call a log message is of: with one open it is of that one and goes nowhere else.
    fn log(&self, params: Object) {
        let level = params.find("level").and_then(LogLevel::parse).unwrap_or(LogLevel::Info);
        let slot = self.pipe.pending().only_speaker().cloned();
        match slot {
            Some(slot) if slot.wants(level) => drop(slot.push(Arrival::Log(level, params))),
            Some(_) => {}
            None => self.inbox().notified(Method::Message, params),
        }
    }

    /// A stateless upstream withdraws nothing of its own: it ends a listen call of ours.
    fn ended(&self, params: &Object) {
        let id = params.get(Key::RequestId).and_then(number);
        if let Some(slot) = id.and_then(|id| self.pipe.pending().remove(id)) {
            slot.finish(Arrival::Lost(Lost::Unknown("it has ended the request".into())));
        }
    }

    fn of_listen_call(&self, params: Object, arrival: fn(Object) -> Arrival) {
        let id = meta::subscription(&params);
        let slot = id.and_then(|id| self.pipe.pending().get(id).cloned());
        match slot {
            Some(slot) => drop(slot.push(arrival(params))),
            None => self.inbox().violated("unknown_subscription", &"a notice of a listen call that is not open"),
        }
    }

    fn garbage(&mut self, text: &Bytes, fault: &FrameFault) {
        self.bad = self.bad.saturating_add(1);
        if self.good == 0 {
            self.pipe.noise.heard(text);
        }
        if let Some(cause) = misframed(text).filter(|_| self.good == 0) {
            self.inbox().suspect(cause);
        }
        let begins = String::from_utf8_lossy(&text[..text.len().min(EXCERPT_BYTES)]);
        self.inbox().violated("not_a_frame", &format_args!("{fault}: {begins}"));
        // A call whose answer cannot be taken ends with the reason, not with its time limit.
        self.give_up(answered_id(text, text), &fault.to_string());
    }

    /// Ends the call of an answer that cannot be taken.
    fn give_up(&self, id: Option<u64>, why: &str) {
        // Half an answer says less than why the stream ended, which its call is about to hear.
        let id = id.filter(|_| !self.is_over);
        if let Some(slot) = id.and_then(|id| self.pipe.pending().remove(id)) {
            self.pipe.left(&slot);
            slot.finish(Arrival::Lost(Lost::Odd(format!("its answer cannot be read: {why}").into())));
        }
    }

    fn inbox(&self) -> &dyn Inbox {
        &*self.pipe.inbox
    }
}

/// What a line that is no frame says of how the messages are framed, as long as none was understood.
fn misframed(line: &[u8]) -> Option<&'static str> {
    const HEADER: &[u8] = b"Content-Length:";
    if line.get(..HEADER.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(HEADER)) {
        return Some(
            "it frames its messages with Content-Length headers, as language servers do; MCP wants one message a line",
        );
    }
    (line == b"{" || line == b"[")
        .then_some("it spreads a message over many lines, as for people to read; MCP wants each message on one line")
}

/// The id of an answer that cannot be read whole, from its first or its last members; `None` where it is no answer.
fn answered_id(head: &[u8], tail: &[u8]) -> Option<u64> {
    let mut members = json::Members::of(head).ok()?;
    while let Ok(Some(member)) = members.next_key() {
        match member.key(head).as_deref() {
            Some(b"method") => return None,
            Some(b"id") => return number(&head[member.value..json::value(head, member.value).ok()?]),
            _ => {}
        }
        match json::value(head, member.value) {
            Ok(end) => members.resume(end),
            Err(_) => break,
        }
    }
    let rest = tail.trim_ascii_end().strip_suffix(b"}")?.trim_ascii_end();
    let digits = rest.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (before, digits) = rest.split_at(rest.len() - digits);
    let is_id = before.trim_ascii_end().strip_suffix(b":").is_some_and(|key| key.trim_ascii_end().ends_with(b"\"id\""));
    is_id.then(|| number(digits)).flatten()
}

fn number(raw: &[u8]) -> Option<u64> {
    std::str::from_utf8(raw).ok()?.parse().ok()
}

fn summary(body: &Body) -> String {
    match body {
        Body::Error(raw) => crate::protocol::error::RpcError::from_raw(raw.clone()).message().unwrap_or_default(),
        _ => "an answer without an id".into(),
    }
}

#[cfg(test)]
mod tests;
