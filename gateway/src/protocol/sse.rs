//! Server-sent events: decoded as browsers do, encoded, bounded.

use bytes::{Buf, Bytes, BytesMut};

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

/// An event passed the limit; it is skipped, and the stream goes on behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a server-sent event is longer than the limit")]
pub struct TooLong;

/// Decodes a stream of events from chunks with any borders.
#[derive(Debug)]
pub struct Decoder {
    buffer: BytesMut,
    searched: usize,
    event: Pending,
    max: usize,
    started: bool,
    /// The last line ended in a carriage return: a newline that follows belongs to it.
    after_return: bool,
    /// The line that is being read passed the limit.
    skipping_line: bool,
}

#[derive(Debug, Default)]
struct Pending {
    event: SseEvent,
    /// Data of more than one line is put together here.
    joined: Option<BytesMut>,
    has_data: bool,
    bytes: usize,
    too_long: bool,
}

impl Decoder {
    /// Events of at most `max` bytes of data.
    pub fn new(max: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            searched: 0,
            event: Pending::default(),
            max,
            started: false,
            after_return: false,
            skipping_line: false,
        }
    }

    /// Takes what was read.
    pub fn push(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// The next whole event of what was read.
    pub fn next_event(&mut self) -> Option<Result<SseEvent, TooLong>> {
        while let Some(line) = self.line() {
            if line.is_empty() {
                if let Some(event) = std::mem::take(&mut self.event).finish() {
                    return Some(event);
                }
            } else {
                self.event.take(line, self.max);
            }
        }
        None
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
            if self.buffer.len() > self.max + 64 {
                self.skipping_line = true;
                self.event.too_long = true;
                self.buffer.clear();
                self.searched = 0;
            }
            return None;
        };
        let end = self.searched + at;
        let line = self.buffer.split_to(end).freeze();
        self.after_return = self.buffer[0] == b'\r';
        self.buffer.advance(1);
        self.searched = 0;
        // A line that was skipped must not look like the blank one that ends an event.
        Some(if std::mem::take(&mut self.skipping_line) { Bytes::from_static(b":") } else { line })
    }
}

impl Pending {
    fn take(&mut self, line: Bytes, max: usize) {
        let (field, mut value) = match memchr::memchr(b':', &line) {
            Some(0) => return,
            Some(at) => (line.slice(..at), line.slice(at + 1..)),
            None => (line, Bytes::new()),
        };
        if value.first() == Some(&b' ') {
            value.advance(1);
        }
        match &field[..] {
            b"data" => {
                self.bytes += value.len() + 1;
                if self.bytes > max + 1 {
                    self.too_long = true;
                }
                if !self.too_long {
                    self.data(value);
                }
                self.has_data = true;
            }
            b"event" => self.event.name = value,
            b"id" if !value.contains(&0) => self.event.id = Some(value),
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                self.event.retry = std::str::from_utf8(&value).ok().and_then(|digits| digits.parse().ok());
            }
            _ => {}
        }
    }

    /// One line of data is shared with the buffer; only a second one makes a copy.
    fn data(&mut self, value: Bytes) {
        if !self.has_data {
            self.event.data = value;
            return;
        }
        let joined = self.joined.get_or_insert_with(|| BytesMut::from(&self.event.data[..]));
        joined.extend_from_slice(b"\n");
        joined.extend_from_slice(&value);
    }

    fn finish(mut self) -> Option<Result<SseEvent, TooLong>> {
        if self.too_long {
            return Some(Err(TooLong));
        }
        if let Some(joined) = self.joined {
            self.event.data = joined.freeze();
        }
        (self.has_data || self.event.id.is_some() || self.event.retry.is_some()).then_some(Ok(self.event))
    }
}

/// Writes one message; the frame must hold no raw newline (see [`super::frame::one_line`]).
pub fn encode(id: Option<&str>, frame: &[u8], out: &mut Vec<u8>) {
    out.reserve(frame.len() + 40);
    out.extend_from_slice(b"event: message\n");
    if let Some(id) = id {
        out.extend_from_slice(b"id: ");
        out.extend_from_slice(id.as_bytes());
        out.push(b'\n');
    }
    out.extend_from_slice(b"data: ");
    out.extend_from_slice(frame);
    out.extend_from_slice(b"\n\n");
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
mod tests {
    use super::*;

    fn all(decoder: &mut Decoder) -> Vec<Result<SseEvent, TooLong>> {
        std::iter::from_fn(|| decoder.next_event()).collect()
    }

    fn decode(stream: &[u8]) -> Vec<Result<SseEvent, TooLong>> {
        let mut whole = Decoder::new(32);
        whole.push(stream);
        let expected = all(&mut whole);
        for step in 1..stream.len().min(9) {
            let mut pieces = Decoder::new(32);
            let mut seen = Vec::new();
            for chunk in stream.chunks(step) {
                pieces.push(chunk);
                seen.extend(all(&mut pieces));
            }
            assert_eq!(seen, expected, "split every {step} bytes: {}", String::from_utf8_lossy(stream));
        }
        expected
    }

    fn data(text: &'static str) -> Result<SseEvent, TooLong> {
        Ok(SseEvent { data: Bytes::from_static(text.as_bytes()), ..SseEvent::default() })
    }

    #[test]
    fn vectors() {
        type Case = (&'static [u8], Vec<Result<SseEvent, TooLong>>);
        let table: [Case; 14] = [
            (b"data: a\n\n", vec![data("a")]),
            (b"data:a\r\n\r\n", vec![data("a")]),
            (b"data:  a\r\r", vec![data(" a")]),
            (b"\xef\xbb\xbfdata: a\n\ndata: b\r\n\n", vec![data("a"), data("b")]),
            (b"data: a\ndata\ndata: b\n\n", vec![data("a\n\nb")]),
            (b": note\n\ndata: a\n: note\n\n", vec![data("a")]),
            (b"data\n\n", vec![data("")]),
            (b"data: cut", vec![]),
            (b"data: cut\n", vec![]),
            (b"unknown: x\nevent: e\n\n", vec![]),
            (b"retry: x\nretry: -1\nid: a\0b\n\n", vec![]),
            (
                b"id: 7\nretry: 250\n\n",
                vec![Ok(SseEvent { id: Some("7".into()), retry: Some(250), ..SseEvent::default() })],
            ),
            (
                b"event: e\nid:\ndata: a\n\n",
                vec![Ok(SseEvent { name: "e".into(), id: Some("".into()), data: "a".into(), retry: None })],
            ),
            (b"data: a\n\n\n\ndata: b\n\n", vec![data("a"), data("b")]),
        ];
        for (stream, expected) in table {
            assert_eq!(decode(stream), expected, "{}", String::from_utf8_lossy(stream));
        }
    }

    #[test]
    fn an_event_over_the_limit_is_skipped_alone() {
        let long = format!("data: {}\n\ndata: ok\n\n", "x".repeat(33));
        assert_eq!(decode(long.as_bytes()), [Err(TooLong), data("ok")]);
        let fits = format!("data: {}\n\n", "x".repeat(32));
        assert!(decode(fits.as_bytes())[0].is_ok());
        let endless = format!("data: {}\ndata: y\n\ndata: ok\n\n", "x".repeat(500));
        assert_eq!(decode(endless.as_bytes()), [Err(TooLong), data("ok")]);
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        let mut out = Vec::new();
        encode_retry(500, &mut out);
        encode_priming("1-0", &mut out);
        out.extend_from_slice(KEEP_ALIVE);
        encode(Some("1-1"), b"{}", &mut out);
        let mut decoder = Decoder::new(1024);
        decoder.push(&out);
        let events: Vec<_> = all(&mut decoder).into_iter().map(Result::unwrap).collect();
        assert_eq!(events[0].retry, Some(500));
        assert_eq!((events[1].id.as_deref(), events[1].data.is_empty()), (Some(&b"1-0"[..]), true));
        assert_eq!((&events[2].name[..], &events[2].data[..]), (&b"message"[..], &b"{}"[..]));
    }
}
