//! The reader of a pipe, which never waits for anyone: lines of a stream, and where each frame belongs.

// What a line that is no frame says of who is there.
mod signs;

use super::exchange::Pipe;
use crate::call::LogLevel;
use crate::health::{Cause, CauseCode};
use crate::memory::Gather;
use crate::memory::account::Kind;
use crate::metrics::messages;
use crate::protocol::frame::Method;
use crate::protocol::frame::message::{BATCH_MAX, Body, Frame, FrameFault, Id};
use crate::protocol::framing::Untaken;
use crate::protocol::framing::lines::{Line, Lines};
use crate::protocol::value::{Key, Object};
use crate::protocol::{json, meta};
use crate::runtime::{FairShare, Tasks, aside};
use crate::transport::events::{IncomingRequest, LinkEvents};
use crate::transport::exchange::Lost;
use crate::transport::exchange::mailbox::{Arrival, Kept};
use crate::transport::questions::Asker;
use bytes::Bytes;
pub(crate) use signs::excerpt;
use signs::{misframed, scheme};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt};

/// So many lines that are no frames, and none that is: whatever it is, it does not speak MCP.
const GARBAGE_MAX: u32 = 1000;

/// How reading a pipe ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadEnd {
    /// The other side closed it.
    Eof,
    /// Reading failed.
    Failed(String),
    /// What comes is not MCP: nothing more is read.
    NotMcp(String),
    /// What comes is of another protocol, by this scheme: nothing more is read.
    Speaks(&'static str),
}

/// Reads until the other side closes; every frame goes where it belongs.
pub fn read(pipe: &Arc<Pipe>, input: impl AsyncRead + Unpin, max: usize) -> impl Future<Output = ReadEnd> {
    read_from(Source::Stdout, pipe, input, max)
}

/// The same, of what is no child's stdout.
pub(crate) async fn read_from(
    source: Source,
    pipe: &Arc<Pipe>,
    mut input: impl AsyncRead + Unpin,
    max: usize,
) -> ReadEnd {
    let mut lines = Lines::new(max, Gather::new(pipe.inbox.budget(), Kind::Line, max));
    let mut sorter = Sorter::new(pipe, max, source);
    let mut stretch = FairShare::default();
    loop {
        let read = match lines.reading() {
            (buffer, None) => input.read_buf(buffer).await,
            (buffer, Some(gather)) => tokio::select! {
                biased;
                () = gather.lost() => {
                    let line = lines.give_up();
                    sorter.line(line);
                    continue;
                }
                read = input.read_buf(buffer) => read,
            },
        };
        let count = match read {
            Ok(0) => {
                if let Some(line) = lines.last() {
                    sorter.is_over = true;
                    sorter.line(line);
                }
                return sorter.scheme.map_or(ReadEnd::Eof, ReadEnd::Speaks);
            }
            Ok(count) => {
                sorter.heard();
                count
            }
            Err(error) if source == Source::Network => {
                return ReadEnd::Failed(format!("the connection broke: {error}"));
            }
            Err(error) => return ReadEnd::Failed(format!("its stdout cannot be read: {error}")),
        };
        while let Some(line) = lines.next_line() {
            sorter.line(line);
            // Its bytes count as they are read.
            stretch.message(0).await;
            if let Some(scheme) = sorter.scheme {
                return ReadEnd::Speaks(scheme);
            }
            if let Some(why) = sorter.foreign() {
                return ReadEnd::NotMcp(why);
            }
        }
        stretch.read(count).await;
    }
}

/// Reads a connection for as long as there is anything to read, nobody has closed the pipe, and the level lasts; then closes the pipe.
pub(crate) async fn until_over(pipe: &Pipe, level: &Tasks, read: impl Future<Output = Cause>) {
    let why = tokio::select! {
        biased;
        _ = pipe.closed() => return,
        () = level.ending() => Cause::new(CauseCode::StoppedByOrder, "stopped on request"),
        why = read => why,
    };
    pipe.close(why);
}

/// Where the frames of a pipe come from, for the words about what is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// A child's stdout.
    Stdout,
    /// A connection.
    Network,
}

/// Brings frames to where they belong. Every reader of a pipe has one, however its frames come.
pub(crate) struct Sorter<'a> {
    pipe: &'a Arc<Pipe>,
    /// The most bytes of a frame.
    max: usize,
    source: Source,
    is_new: bool,
    good: u64,
    bad: u32,
    /// The first message was our own first one.
    is_echo: bool,
    /// What comes now was perhaps cut short by the end of the stream.
    is_over: bool,
    /// The scheme of the protocol that the first message is of, where that is no MCP.
    scheme: Option<&'static str>,
}

impl<'a> Sorter<'a> {
    /// Of a pipe whose frames have at most `max` bytes.
    pub(crate) fn new(pipe: &'a Arc<Pipe>, max: usize, source: Source) -> Self {
        Self { pipe, max, source, is_new: true, good: 0, bad: 0, is_echo: false, is_over: false, scheme: None }
    }

    /// Something has come, whatever it is.
    pub(crate) fn heard(&mut self) {
        self.pipe.pulse.beat();
        if std::mem::take(&mut self.is_new) {
            self.pipe.hears();
        }
    }

    /// Why what comes is not MCP, once that shows: nothing more need be read.
    pub(crate) fn foreign(&self) -> Option<String> {
        if self.is_echo {
            return Some("not an MCP server: it echoes its input".to_owned());
        }
        let is_foreign = self.good == 0 && self.bad >= GARBAGE_MAX;
        let what = match self.source {
            Source::Stdout => "lines on stdout",
            Source::Network => "messages",
        };
        is_foreign.then(|| format!("not an MCP server: {GARBAGE_MAX} {what}, none of them MCP"))
    }

    /// Takes a frame, or what came in the place of one.
    pub(crate) fn line(&mut self, line: Line) {
        match line {
            Line::Frame(text) if Frame::is_batch(&text) => match aside(text.len(), || Frame::split(&text, BATCH_MAX)) {
                Ok(parts) => parts.into_iter().for_each(|part| self.frame(part)),
                Err(fault) => self.garbage(&text, &fault),
            },
            Line::Frame(text) => self.frame(text),
            Line::Untaken { why, head, tail } => self.untaken(why, &head, tail.as_deref()),
        }
    }

    /// A line that is not taken: its call ends as soon as it is known which that is.
    fn untaken(&self, why: Untaken, head: &[u8], tail: Option<&[u8]>) {
        let lost = match why {
            Untaken::TooLong => {
                let max = self.max;
                let why = format!("a line of more than {max} bytes, the limit set by `max_response`");
                if tail.is_none() {
                    self.inbox().violated("line_too_long", &why);
                }
                Lost::Odd(unreadable(&why))
            }
            // The upstream is not at fault; the budget says that a line was dropped.
            Untaken::NoRoom => {
                Lost::Dropped(Cause::new(CauseCode::MemoryFull, format!("the response was dropped: {why}")))
            }
        };
        self.give_up(answered_id(head, tail.unwrap_or_default()), lost);
    }

    fn frame(&mut self, text: Bytes) {
        match aside(text.len(), || Frame::parse(&text)) {
            Ok(frame) => {
                if self.good == 0 {
                    self.pipe.noise.is_over();
                }
                self.good += 1;
                messages::UPSTREAM.received();
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
                self.inbox().asked(IncomingRequest { id, method, params, on: None }, self.pipe.clone());
            }
        }
    }

    fn response(&self, id: &Id, body: Body) {
        let Some(number) = id.number() else {
            let id = excerpt(id.raw());
            return self.inbox().violated("unknown_id", &format_args!("a response to an unknown id: {id}"));
        };
        let mut pending = self.pipe.pending();
        let slot = pending.remove(number);
        let (ours, late) = (pending.was_ours(number), pending.was_given_up(number));
        drop(pending);
        match slot {
            Some(slot) => {
                // What it asked of this call it no longer needs: that is over before the call is.
                self.pipe.left(&slot);
                self.pipe.made.answered(number, &slot, &body);
                slot.finish(Arrival::Response(body));
            }
            None if late => self.inbox().violated("late_answer", &"a late response"),
            None if ours => self.inbox().violated("duplicate_answer", &"a second response to one request"),
            None => self.inbox().violated("unknown_id", &format_args!("a response to an unknown id: {number}")),
        }
    }

    fn progress(&self, params: Object) {
        let id = params.get(Key::ProgressToken).and_then(number);
        let slot = id.and_then(|id| self.pipe.pending().get(id).cloned());
        let Some(slot) = slot else {
            if !self.pipe.made.progressed(self.inbox(), params) {
                match id.is_some_and(|id| self.pipe.pending().was_given_up(id)) {
                    true => self.inbox().violated("late_progress", &"progress of a request that was given up"),
                    false => {
                        self.inbox().violated("unknown_token", &"progress for a request that is not in flight");
                    }
                }
            }
            return;
        };
        if slot.push(Arrival::Progress(params), self.inbox().budget()) != Kept::Yes {
            self.inbox()
                .violated("progress_dropped", &"progress that was not requested, did not increase, or came too often");
        }
    }

    /// On a pipe nothing says which call a log message is of: with one open it is of that one and goes nowhere else.
    fn log(&self, params: Object) {
        let level = params.find("level").and_then(LogLevel::parse).unwrap_or(LogLevel::Info);
        let slot = self.pipe.pending().only_speaker().cloned();
        match slot {
            Some(slot) if slot.wants(level) => drop(slot.push(Arrival::Log(level, params), self.inbox().budget())),
            Some(_) => {}
            None => self.inbox().notified(Method::Message, params),
        }
    }

    /// A stateless upstream withdraws nothing of its own: it ends a listen call of ours.
    fn ended(&self, params: &Object) {
        let id = params.get(Key::RequestId).and_then(number);
        if let Some(slot) = id.and_then(|id| self.pipe.pending().give_up(id)) {
            self.inbox().violated("ended_request", &"it withdrew a request that was made of it");
            slot.finish(Arrival::Lost(Lost::Unknown(Cause::new(
                CauseCode::ResponseIncomplete,
                "it has ended the request",
            ))));
        }
    }

    fn of_listen_call(&self, params: Object, arrival: fn(Object) -> Arrival) {
        let id = meta::subscription(&params);
        let slot = id.and_then(|id| self.pipe.pending().get(id).cloned());
        match slot {
            Some(slot) => drop(slot.push(arrival(params), self.inbox().budget())),
            None if id.is_some_and(|id| self.pipe.pending().was_given_up(id)) => {
                self.inbox().violated("late_notification", &"a notification for a listen call that was given up");
            }
            None => self.inbox().violated("unknown_subscription", &"a notification for a listen call that is not open"),
        }
    }

    fn garbage(&mut self, text: &Bytes, fault: &FrameFault) {
        self.bad = self.bad.saturating_add(1);
        if self.good == 0 {
            self.pipe.noise.heard(text);
        }
        if self.source == Source::Network && self.good == 0 && self.bad == 1 {
            self.scheme = scheme(text);
        }
        if let Some(cause) = misframed(text).filter(|_| self.good == 0) {
            self.inbox().suspect(cause);
        }
        let begins = excerpt(text);
        match text.first() {
            Some(b'{' | b'[') => self.inbox().violated("not_a_frame", &format_args!("{fault}: {begins}")),
            _ if self.source == Source::Network => {
                self.inbox().violated("not_a_frame", &format_args!("not MCP: {begins}"))
            }
            _ => self.inbox().violated("not_a_frame", &format_args!("not MCP (logs belong on stderr): {begins}")),
        }
        // A call whose answer cannot be taken ends with the reason, not with its time limit.
        self.give_up(answered_id(text, text), Lost::Odd(unreadable(&fault.to_string())));
    }

    /// Ends the call of an answer that cannot be taken.
    fn give_up(&self, id: Option<u64>, lost: Lost) {
        // Half an answer says less than why the stream ended, which its call is about to hear.
        let id = id.filter(|_| !self.is_over);
        if let Some(id) = id {
            self.pipe.lose(id, lost);
        }
    }

    fn inbox(&self) -> &dyn LinkEvents {
        &*self.pipe.inbox
    }
}

fn unreadable(why: &str) -> Cause {
    Cause::new(CauseCode::ResponseInvalid, format!("the response cannot be read: {why}"))
}

/// The id of an answer that cannot be read whole, from its first or its last members; `None` where it is no answer.
pub(crate) fn answered_id(head: &[u8], tail: &[u8]) -> Option<u64> {
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
        Body::Error(raw) => {
            crate::protocol::frame::rpc_error::RpcError::from_raw(raw.clone()).message().unwrap_or_default()
        }
        _ => "a response without an id".into(),
    }
}

#[cfg(test)]
mod tests;
