//! Server-sent events: decoded as browsers do, encoded, bounded.

use super::edges::Edges;
use super::store::{Store, Untaken};
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// A comment: keeps a stream alive and means nothing.
pub const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SseEvent {
    /// The event's type; empty means `message`.
    pub name: Bytes,
    /// Its data lines, joined by newlines; empty for an event that only sets an id or the delay.
    pub data: Bytes,
    /// Its id, where it sets one.
    pub id: Option<Bytes>,
    /// The delay before a reconnect, in milliseconds, where it sets one.
    pub retry: Option<u64>,
}

/// A line that is longer is not waited for: its data is put together in the store.
const BUFFER_BYTES: usize = 128 * 1024;

/// What an event has that is too long for a decoder of events of `max` bytes, in words.
pub fn too_long(max: usize) -> String {
    let line = line_max(max);
    format!("an event with more than {max} bytes of data, or with another line of more than {line} bytes")
}

/// How long a line is at most that is not one of data.
fn line_max(max: usize) -> usize {
    BUFFER_BYTES.min(max + 64)
}

/// An event that was not taken, once it has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Why.
    pub why: Untaken,
    /// The first bytes of its data.
    pub head: Bytes,
    /// The last bytes of its data.
    pub tail: Bytes,
}

/// Decodes a stream of events from chunks with any borders. An event that cannot be taken is told of at once and skipped, and the
/// stream goes on behind it.
#[derive(Debug)]
pub struct Decoder<S> {
    buffer: BytesMut,
    searched: usize,
    event: Pending,
    /// Data that does not stand in one line of the buffer.
    store: S,
    /// The ends of that data.
    edges: Edges,
    skipped: Option<Skipped>,
    max: usize,
    /// How many events have ended, and how many bytes have come since the last of them did.
    ended: u64,
    came: usize,
    started: bool,
    /// The last line ended in a carriage return: a newline that follows belongs to it.
    after_return: bool,
    /// The line that is being read is larger than the buffer, and its beginning is gone from there.
    long: Option<Long>,
}

/// What becomes of a line that is larger than the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Long {
    Data,
    Skipped,
}

#[derive(Debug, Default)]
struct Pending {
    event: SseEvent,
    /// Its data is in the store.
    is_stored: bool,
    has_data: bool,
    bytes: usize,
    /// It is skipped; whether that was told of.
    untaken: Option<(Untaken, bool)>,
}

impl<S: Store> Decoder<S> {
    /// Events of at most `max` bytes of data.
    pub fn new(max: usize, store: S) -> Self {
        Self {
            buffer: BytesMut::new(),
            searched: 0,
            event: Pending::default(),
            store,
            edges: Edges::default(),
            skipped: None,
            max,
            ended: 0,
            came: 0,
            started: false,
            after_return: false,
            long: None,
        }
    }

    /// Takes what was read.
    pub fn push(&mut self, chunk: &[u8]) {
        self.came += chunk.len();
        self.buffer.extend_from_slice(chunk);
    }

    /// An event that has begun and not ended: its number, and how many bytes of it have come. Comments are none.
    pub fn begun(&self) -> Option<(u64, usize)> {
        let is_any = self.buffer.first().is_some_and(|first| *first != b':') || self.long.is_some();
        let is_begun = is_any || self.event.has_data || self.event.untaken.is_some();
        is_begun.then_some((self.ended, self.came))
    }

    /// Where data is being put together that does not stand in the buffer; `None` while there is none.
    pub fn gathering(&mut self) -> Option<&mut S> {
        (self.store.held() > 0).then_some(&mut self.store)
    }

    /// Gives up the data that is being put together: its event is not taken.
    pub fn give_up(&mut self) {
        self.skip(Untaken::NoRoom);
    }

    /// The last event that was told to be untaken, once after it has ended.
    pub fn skipped(&mut self) -> Option<Skipped> {
        self.skipped.take()
    }

    /// The next whole event of what was read.
    pub fn next_event(&mut self) -> Option<Result<SseEvent, Untaken>> {
        loop {
            let line = self.line();
            if let Some((why, was_told @ false)) = &mut self.event.untaken {
                *was_told = true;
                let why = *why;
                self.ended(line);
                return Some(Err(why));
            }
            if let Some(event) = self.ended(line?) {
                return Some(Ok(event));
            }
        }
    }

    /// A line has ended, which may end an event.
    fn ended(&mut self, line: impl Into<Option<Bytes>>) -> Option<SseEvent> {
        let line = line.into()?;
        if !line.is_empty() {
            self.take(line);
            return None;
        }
        (self.ended, self.came) = (self.ended + 1, self.buffer.len());
        let event = std::mem::take(&mut self.event);
        if let Some((why, _)) = event.untaken {
            let (head, tail) = self.edges.take();
            self.skipped = Some(Skipped { why, head, tail });
            return None;
        }
        let data = if event.is_stored { self.store.give() } else { event.event.data };
        let is_any = event.has_data || event.event.id.is_some() || event.event.retry.is_some();
        is_any.then_some(SseEvent { data, ..event.event })
    }

    /// The next line without its end.
    fn line(&mut self) -> Option<Bytes> {
        if !self.started {
            if self.buffer.len() < 3 && b"\xef\xbb\xbf".starts_with(&self.buffer) {
                return None;
            }
            self.started = true;
            if self.buffer.starts_with(b"\xef\xbb\xbf") {
                self.buffer.advance(3);
            }
        }
        if self.after_return && !self.buffer.is_empty() {
            self.after_return = false;
            if self.buffer[0] == b'\n' {
                self.buffer.advance(1);
            }
        }
        let Some(at) = memchr::memchr2(b'\n', b'\r', &self.buffer[self.searched..]) else {
            self.searched = self.buffer.len();
            if self.buffer.len() > line_max(self.max) || (self.long.is_some() && !self.buffer.is_empty()) {
                let part = self.buffer.split().freeze();
                self.searched = 0;
                self.part(part);
            }
            return None;
        };
        let end = self.searched + at;
        let line = self.buffer.split_to(end).freeze();
        self.after_return = self.buffer[0] == b'\r';
        self.buffer.advance(1);
        self.searched = 0;
        // Wherever the borders of what was read fell in it.
        let is_long = line.len() > line_max(self.max) && !line.starts_with(b"data:");
        if self.long.is_some() || is_long {
            self.part(line);
            self.long = None;
            // It must not look like the blank one that ends an event.
            return Some(Bytes::from_static(b":"));
        }
        Some(line)
    }

    /// Takes a part of a line whose end has not come.
    fn part(&mut self, part: Bytes) {
        match self.long {
            Some(Long::Data) => self.store(&part),
            Some(Long::Skipped) => {}
            None if part.starts_with(b"data:") => {
                self.long = Some(Long::Data);
                let value = &part[5..];
                self.data_begins();
                self.store(value.strip_prefix(b" ").unwrap_or(value));
            }
            None => {
                self.long = Some(Long::Skipped);
                self.skip(Untaken::TooLong);
            }
        }
    }

    fn take(&mut self, line: Bytes) {
        let (field, mut value) = match memchr::memchr(b':', &line) {
            Some(0) => return,
            Some(at) => (line.slice(..at), line.slice(at + 1..)),
            None => (line, Bytes::new()),
        };
        if value.first() == Some(&b' ') {
            value.advance(1);
        }
        let event = &mut self.event.event;
        match &field[..] {
            // One line of data is shared with the buffer; only a second one makes a copy.
            b"data" if !self.event.has_data && value.len() <= self.max => {
                self.event.bytes = value.len() + 1;
                self.event.has_data = true;
                event.data = value;
            }
            b"data" => {
                self.data_begins();
                self.store(&value);
            }
            b"event" => event.name = value,
            b"id" if !value.contains(&0) => event.id = Some(value),
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                event.retry = std::str::from_utf8(&value).ok().and_then(|digits| digits.parse().ok());
            }
            _ => {}
        }
    }

    /// A line of data is put into the store, behind those before it.
    fn data_begins(&mut self) {
        let has_more = std::mem::replace(&mut self.event.has_data, true);
        if !std::mem::replace(&mut self.event.is_stored, true) {
            self.edges.clear();
            if has_more {
                let first = std::mem::take(&mut self.event.event.data);
                self.event.bytes = 0;
                self.store(&first);
            }
        }
        if has_more {
            self.store(b"\n");
        }
    }

    fn store(&mut self, bytes: &[u8]) {
        self.edges.note(bytes);
        if self.event.untaken.is_some() {
            return;
        }
        self.event.bytes += bytes.len();
        if self.event.bytes > self.max {
            self.skip(Untaken::TooLong);
        } else if !bytes.is_empty() && !self.store.push(bytes) {
            self.skip(Untaken::NoRoom);
        }
    }

    fn skip(&mut self, why: Untaken) {
        self.event.untaken.get_or_insert((why, false));
        self.event.event.data = Bytes::new();
        self.store.forget();
    }
}

/// Writes one message; the frame must hold no raw newline (see [`crate::frame::message::one_line`]).
pub fn encode<B: BufMut>(id: Option<&str>, frame: &[u8], out: &mut B) {
    out.put_slice(b"event: message\n");
    if let Some(id) = id {
        out.put_slice(b"id: ");
        out.put_slice(id.as_bytes());
        out.put_u8(b'\n');
    }
    out.put_slice(b"data: ");
    out.put_slice(frame);
    out.put_slice(b"\n\n");
}

/// How long a message is at most, once it is written.
pub fn room(id: Option<&str>, frame: &[u8]) -> usize {
    frame.len() + id.map_or(0, str::len) + 40
}

/// Writes the event that gives a client something to resume from before anything happened.
pub fn encode_priming(id: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("id: {id}\ndata: \n\n").as_bytes());
}

/// Tells the client how long to wait before it reconnects.
pub fn encode_retry(milliseconds: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("retry: {milliseconds}\n\n").as_bytes());
}

#[cfg(test)]
mod tests;
