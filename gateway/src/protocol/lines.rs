//! Newline-delimited frames: a large buffer, split where the newlines are, bounded.

use bytes::{Bytes, BytesMut};

/// What a reader should have room for before it reads.
pub const READ_BYTES: usize = 64 * 1024;

/// One line of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A line that may be a frame: trimmed, never blank.
    Frame(Bytes),
    /// A line that passed the limit; it is skipped whole, and told of once, with what stood at its ends.
    TooLong {
        /// Its first bytes.
        head: Bytes,
        /// Its last bytes.
        tail: Bytes,
    },
}

/// How much of either end of a line that is too long is kept: enough for the id of a frame.
const EDGE_BYTES: usize = 256;

/// Splits what is read into lines.
#[derive(Debug)]
pub struct Lines {
    buffer: BytesMut,
    /// How much of the buffer was searched for a newline already.
    searched: usize,
    /// The line that is being read has passed the limit: its first bytes, and its last so far.
    skipping: Option<(Bytes, BytesMut)>,
    max: usize,
    started: bool,
    /// A line has passed that was larger than what is worth keeping.
    is_grown: bool,
}

/// The buffer of a larger line is not kept.
const KEEP_BYTES: usize = 16 * READ_BYTES;

impl Lines {
    /// Lines of at most `max` bytes, line end not counted.
    pub fn new(max: usize) -> Self {
        Self { buffer: BytesMut::new(), searched: 0, skipping: None, max, started: false, is_grown: false }
    }

    /// Where to read into; has room for [`READ_BYTES`].
    pub fn buffer(&mut self) -> &mut BytesMut {
        if self.is_grown && self.buffer.len() <= READ_BYTES {
            // A large message came and went: its memory goes too, which what little came after it would hold.
            let mut rest = BytesMut::with_capacity(self.buffer.len() + READ_BYTES);
            rest.extend_from_slice(&self.buffer);
            self.buffer = rest;
            self.is_grown = false;
        }
        // Less than a full read is no reason to move what is buffered, until little is left.
        if self.buffer.capacity() - self.buffer.len() < READ_BYTES / 8 {
            self.buffer.reserve(READ_BYTES);
        }
        &mut self.buffer
    }

    /// The next whole line of what was read.
    pub fn next_line(&mut self) -> Option<Line> {
        loop {
            let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
                self.searched = self.buffer.len();
                // One byte may be the carriage return of a line that just fits.
                let fits = self.buffer.len() <= self.max
                    || (self.buffer.len() == self.max + 1 && self.buffer.last() == Some(&b'\r'));
                if self.skipping.is_some() || !fits {
                    self.skip();
                }
                return None;
            };
            let line = self.buffer.split_to(self.searched + at + 1).freeze();
            self.searched = 0;
            self.is_grown |= line.len() > KEEP_BYTES;
            if let Some((head, mut tail)) = self.skipping.take() {
                keep_end(&mut tail, &line, self.edge());
                return Some(Line::TooLong { head, tail: tail.freeze() });
            }
            if let Some(line) = self.judge(line) {
                return Some(line);
            }
        }
    }

    /// What was read after the last newline, at the end of the stream: a line cut short, or whole without its newline.
    pub fn last(&mut self) -> Option<Line> {
        let rest = self.buffer.split().freeze();
        self.searched = 0;
        match self.skipping.take() {
            Some((head, mut tail)) => {
                keep_end(&mut tail, &rest, self.edge());
                Some(Line::TooLong { head, tail: tail.freeze() })
            }
            None => self.judge(rest),
        }
    }

    fn judge(&mut self, line: Bytes) -> Option<Line> {
        let mut text: &[u8] = &line;
        if !std::mem::replace(&mut self.started, true) {
            text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        }
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        if text.len() > self.max {
            let (head, mut tail) = (Bytes::copy_from_slice(&text[..self.edge()]), BytesMut::new());
            keep_end(&mut tail, text, self.edge());
            return Some(Line::TooLong { head, tail: tail.freeze() });
        }
        let text = text.trim_ascii();
        (!text.is_empty()).then(|| Line::Frame(line.slice_ref(text)))
    }

    /// Forgets what was read of a line that is too long, but for its ends.
    fn skip(&mut self) {
        let edge = self.edge();
        let (_, tail) =
            self.skipping.get_or_insert_with(|| (Bytes::copy_from_slice(&self.buffer[..edge]), BytesMut::new()));
        keep_end(tail, &self.buffer, edge);
        self.is_grown |= self.buffer.len() > KEEP_BYTES;
        self.buffer.clear();
        self.searched = 0;
    }

    /// A line that is too long is longer than this.
    fn edge(&self) -> usize {
        EDGE_BYTES.min(self.max)
    }
}

/// Keeps the last `edge` bytes of a line of which `more` has come, its end not counted.
fn keep_end(tail: &mut BytesMut, more: &[u8], edge: usize) {
    let more = more.strip_suffix(b"\n").unwrap_or(more);
    tail.extend_from_slice(&more[more.len().saturating_sub(edge)..]);
    let _before = tail.split_to(tail.len().saturating_sub(edge));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn drain(lines: &mut Lines) -> Vec<Line> {
        std::iter::from_fn(|| lines.next_line()).collect()
    }

    fn frame(text: &str) -> Line {
        Line::Frame(Bytes::copy_from_slice(text.as_bytes()))
    }

    fn long(head: &'static str, tail: &'static str) -> Line {
        Line::TooLong { head: Bytes::from(head), tail: Bytes::from(tail) }
    }

    #[test]
    fn byte_order_mark_carriage_returns_and_blank_lines_are_taken() {
        let mut lines = Lines::new(64);
        lines.buffer().extend_from_slice(b"\xef\xbb\xbf{}\r\n\r\n  \n [] \n{");
        assert_eq!(drain(&mut lines), [frame("{}"), frame("[]")]);
        assert_eq!(lines.last(), Some(frame("{")));
    }

    #[test]
    fn the_limit_is_exact_and_a_longer_line_is_told_of_once() {
        let mut lines = Lines::new(4);
        lines.buffer().extend_from_slice(b"1234\n1234\r\n12345\nok\n");
        assert_eq!(drain(&mut lines), [frame("1234"), frame("1234"), long("1234", "2345"), frame("ok")]);
        for _ in 0..3 {
            lines.buffer().extend_from_slice(b"123456");
            lines.next_line();
        }
        assert!(lines.buffer.is_empty());
        lines.buffer().extend_from_slice(b"7\nok\n");
        assert_eq!(drain(&mut lines), [long("1234", "4567"), frame("ok")]);
        lines.buffer().extend_from_slice(b"123456");
        assert_eq!((lines.next_line(), lines.last()), (None, Some(long("1234", "3456"))));
    }

    #[test]
    fn memory_of_a_large_line_is_given_back() {
        let mut lines = Lines::new(32 << 20);
        lines.buffer().extend_from_slice(&vec![b'x'; 20 << 20]);
        lines.buffer().extend_from_slice(b"\n");
        lines.buffer().extend_from_slice(b"{\"next\":");
        let large = drain(&mut lines);
        let Line::Frame(large) = &large[0] else { panic!("it is not too long") };
        lines.buffer().extend_from_slice(b"1}\n");
        assert!(large.is_unique(), "what came after it holds nothing of it");
        assert!(lines.buffer().capacity() < 2 << 20);
        assert_eq!(drain(&mut lines), [frame("{\"next\":1}")]);
    }

    proptest! {
        #[test]
        fn any_chunk_borders_give_the_same_lines(
            texts in prop::collection::vec("[a-z ]{0,12}", 0..12), cuts in prop::collection::vec(1..9usize, 1..40),
        ) {
            let stream = texts.iter().map(|t| format!("{t}\n")).collect::<String>().into_bytes();
            let mut whole = Lines::new(8);
            whole.buffer().extend_from_slice(&stream);
            let (mut pieces, mut seen, mut at) = (Lines::new(8), Vec::new(), 0);
            for cut in cuts.iter().cycle() {
                if at == stream.len() { break }
                let end = (at + cut).min(stream.len());
                pieces.buffer().extend_from_slice(&stream[at..end]);
                seen.extend(drain(&mut pieces));
                at = end;
            }
            prop_assert_eq!(seen, drain(&mut whole));
        }
    }
}
