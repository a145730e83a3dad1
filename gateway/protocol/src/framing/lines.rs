//! Newline-delimited frames: a buffer, split where the newlines are, bounded; what is larger is put together elsewhere.

use super::store::{Store, Untaken};
use bytes::{Bytes, BytesMut};

/// What a reader should have room for before it reads.
pub const READ_BYTES: usize = 64 * 1024;

/// One line of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A line that may be a frame: trimmed, never blank.
    Frame(Bytes),
    /// A line that cannot be taken; it is dropped while it is read, and told of as soon as that is known and once more at its end.
    Untaken {
        /// Why.
        why: Untaken,
        /// Its first bytes.
        head: Bytes,
        /// Its last bytes; `None` while it goes on.
        tail: Option<Bytes>,
    },
}

/// What some programs write before the first line.
const MARK: &[u8] = b"\xef\xbb\xbf";
/// How much of either end of a line that is not taken is kept: enough for the id of a frame.
const EDGE_BYTES: usize = 256;
/// A line that is longer is put together in the store.
const BUFFER_BYTES: usize = 2 * READ_BYTES;

/// Splits what is read into lines.
#[derive(Debug)]
pub struct Lines<S> {
    buffer: BytesMut,
    /// How much of the buffer was searched for a newline already.
    searched: usize,
    /// What was read before of a line that is larger than the buffer.
    store: S,
    /// The first bytes of that, or of a line that is dropped.
    head: Bytes,
    /// The line that is being read is not taken: why, and its last bytes so far.
    skipping: Option<(Untaken, BytesMut)>,
    max: usize,
    started: bool,
}

impl<S: Store> Lines<S> {
    /// Lines of at most `max` bytes, line end not counted.
    pub fn new(max: usize, store: S) -> Self {
        let (buffer, head) = (BytesMut::new(), Bytes::new());
        Self { buffer, searched: 0, store, head, skipping: None, max, started: false }
    }

    /// Where to read into; has room for a part of [`READ_BYTES`] at least.
    pub fn buffer(&mut self) -> &mut BytesMut {
        // Less than a full read is no reason to move what is buffered, until little is left.
        if self.buffer.capacity() - self.buffer.len() < READ_BYTES / 8 {
            self.buffer.reserve(READ_BYTES);
        }
        &mut self.buffer
    }

    /// As [`Self::buffer`]; beside it where a line is being put together that is larger than that, while there is one.
    pub fn reading(&mut self) -> (&mut BytesMut, Option<&mut S>) {
        self.buffer();
        (&mut self.buffer, (self.store.held() > 0).then_some(&mut self.store))
    }

    /// What was put together was taken away: the line is not taken.
    pub fn give_up(&mut self) -> Line {
        self.skip(Untaken::NoRoom)
    }

    /// The next whole line of what was read.
    pub fn next_line(&mut self) -> Option<Line> {
        loop {
            let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
                return self.rest();
            };
            let line = self.buffer.split_to(self.searched + at + 1).freeze();
            self.searched = 0;
            if let Some(line) = self.end(line) {
                return Some(line);
            }
        }
    }

    /// What was read after the last newline, at the end of the stream: a line cut short, or whole without its newline.
    pub fn last(&mut self) -> Option<Line> {
        let rest = self.buffer.split().freeze();
        self.searched = 0;
        self.end(rest)
    }

    /// What was read of a line whose end has not come.
    fn rest(&mut self) -> Option<Line> {
        self.searched = self.buffer.len();
        if let Some((_, tail)) = &mut self.skipping {
            keep_end(tail, &self.buffer, EDGE_BYTES.min(self.max));
            self.emptied();
            return None;
        }
        let length = self.store.held() + self.buffer.len() - self.mark();
        // One byte may be the carriage return of a line that just fits.
        if length > self.max && !(length == self.max + 1 && self.buffer.last() == Some(&b'\r')) {
            return Some(self.skip(Untaken::TooLong));
        }
        if length > BUFFER_BYTES {
            self.begin();
            if !self.store.push(&self.buffer) {
                return Some(self.skip(Untaken::NoRoom));
            }
            self.emptied();
        }
        None
    }

    /// How long the byte order mark is that the line begins with, and that is no part of it.
    fn mark(&self) -> usize {
        let first = if self.head.is_empty() { &self.buffer[..] } else { &self.head };
        if !self.started && first.starts_with(MARK) { MARK.len() } else { 0 }
    }

    /// A line has ended with these bytes.
    fn end(&mut self, line: Bytes) -> Option<Line> {
        if let Some((why, mut tail)) = self.skipping.take() {
            keep_end(&mut tail, &line, self.edge());
            return Some(Line::Untaken { why, head: std::mem::take(&mut self.head), tail: Some(tail.freeze()) });
        }
        if self.store.held() == 0 {
            return self.judge(line);
        }
        if self.store.push(&line) {
            let whole = self.store.give();
            self.head = Bytes::new();
            return self.judge(whole);
        }
        let mut tail = BytesMut::new();
        keep_end(&mut tail, &line, self.edge());
        let (why, head) = (Untaken::NoRoom, std::mem::take(&mut self.head));
        Some(Line::Untaken { why, head, tail: Some(tail.freeze()) })
    }

    fn judge(&mut self, line: Bytes) -> Option<Line> {
        let mut text: &[u8] = &line;
        if !std::mem::replace(&mut self.started, true) {
            text = text.strip_prefix(MARK).unwrap_or(text);
        }
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        if text.len() > self.max {
            let (head, mut tail) = (Bytes::copy_from_slice(&text[..self.edge()]), BytesMut::new());
            keep_end(&mut tail, text, self.edge());
            return Some(Line::Untaken { why: Untaken::TooLong, head, tail: Some(tail.freeze()) });
        }
        let text = text.trim_ascii();
        (!text.is_empty()).then(|| Line::Frame(line.slice_ref(text)))
    }

    /// Forgets what was read of a line that is not taken, but for its ends.
    fn skip(&mut self, why: Untaken) -> Line {
        self.begin();
        self.store.forget();
        self.started = true;
        let mut tail = BytesMut::new();
        keep_end(&mut tail, &self.buffer, self.edge());
        self.skipping = Some((why, tail));
        self.emptied();
        Line::Untaken { why, head: self.head.clone(), tail: None }
    }

    /// Keeps the first bytes of the line, where that was not done yet.
    fn begin(&mut self) {
        if self.head.is_empty() {
            self.head = Bytes::copy_from_slice(&self.buffer[..self.edge().min(self.buffer.len())]);
        }
    }

    fn emptied(&mut self) {
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

    /// A store with little room.
    #[derive(Debug, Default)]
    struct Little(Vec<u8>);

    impl Store for Little {
        fn push(&mut self, piece: &[u8]) -> bool {
            self.0.extend_from_slice(piece);
            let fits = self.0.len() <= 4 * BUFFER_BYTES;
            if !fits {
                self.0.clear();
            }
            fits
        }

        fn held(&self) -> usize {
            self.0.len()
        }

        fn give(&mut self) -> Bytes {
            self.0.give()
        }

        fn forget(&mut self) {
            self.0.clear();
        }
    }

    fn lines(max: usize) -> Lines<Vec<u8>> {
        Lines::new(max, Vec::new())
    }

    fn drain<S: Store>(lines: &mut Lines<S>) -> Vec<Line> {
        std::iter::from_fn(|| lines.next_line()).collect()
    }

    fn frame(text: &str) -> Line {
        Line::Frame(Bytes::copy_from_slice(text.as_bytes()))
    }

    fn long(head: &'static str, tail: Option<&'static str>) -> Line {
        Line::Untaken { why: Untaken::TooLong, head: Bytes::from(head), tail: tail.map(Bytes::from) }
    }

    #[test]
    fn byte_order_mark_carriage_returns_and_blank_lines_are_taken() {
        let mut lines = lines(64);
        lines.buffer().extend_from_slice(b"\xef\xbb\xbf{}\r\n\r\n  \n [] \n{");
        assert_eq!(drain(&mut lines), [frame("{}"), frame("[]")]);
        assert_eq!(lines.last(), Some(frame("{")));
    }

    #[test]
    fn the_limit_is_exact_and_a_longer_line_is_told_of_at_once_and_at_its_end() {
        let mut lines = lines(4);
        lines.buffer().extend_from_slice(b"1234\n1234\r\n12345\nok\n");
        assert_eq!(drain(&mut lines), [frame("1234"), frame("1234"), long("1234", Some("2345")), frame("ok")]);
        lines.buffer().extend_from_slice(b"123456");
        assert_eq!(lines.next_line(), Some(long("1234", None)));
        for _ in 0..3 {
            lines.buffer().extend_from_slice(b"123456");
            assert_eq!(lines.next_line(), None);
        }
        assert!(lines.buffer.is_empty());
        lines.buffer().extend_from_slice(b"7\nok\n");
        assert_eq!(drain(&mut lines), [long("1234", Some("4567")), frame("ok")]);
        lines.buffer().extend_from_slice(b"123456");
        assert_eq!((lines.next_line(), lines.last()), (Some(long("1234", None)), Some(long("1234", Some("3456")))));
    }

    #[test]
    fn an_endless_line_grows_no_buffer() {
        let mut lines = lines(32 << 20);
        let mut untaken = Vec::new();
        for _ in 0..1_000 {
            lines.buffer().extend_from_slice(&[b'x'; READ_BYTES]);
            untaken.extend(lines.next_line());
            assert!(lines.buffer.capacity() <= 4 * READ_BYTES);
        }
        assert!(matches!(&untaken[..], [Line::Untaken { why: Untaken::TooLong, tail: None, .. }]));
        assert_eq!(lines.store.held(), 0);
    }

    #[test]
    fn a_line_without_room_is_told_of_with_its_ends_and_those_behind_it_are_taken() {
        let mut lines = Lines::new(32 << 20, Little::default());
        let mut seen = Vec::new();
        for piece in [b"{\"id\":7," as &[u8], &vec![b' '; 8 * BUFFER_BYTES], b"}\n{\"id\":8}\n"] {
            for piece in piece.chunks(READ_BYTES) {
                lines.buffer().extend_from_slice(piece);
                seen.extend(drain(&mut lines));
            }
        }
        let [Line::Untaken { why, head, tail: None }, Line::Untaken { tail: Some(tail), .. }, next] = &seen[..] else {
            panic!("{seen:?}")
        };
        assert!(*why == Untaken::NoRoom && head.starts_with(b"{\"id\":7,") && tail.ends_with(b" }"));
        assert_eq!(*next, frame("{\"id\":8}"));
    }

    #[test]
    fn memory_of_a_large_line_is_its_own() {
        let mut lines = lines(32 << 20);
        let mut large = Vec::new();
        for piece in vec![b'x'; 20 << 20].chunks(READ_BYTES) {
            lines.buffer().extend_from_slice(piece);
            large.extend(lines.next_line());
        }
        lines.buffer().extend_from_slice(b"\n{\"next\":");
        large.extend(drain(&mut lines));
        let [Line::Frame(large)] = &large[..] else { panic!("it is not too long") };
        lines.buffer().extend_from_slice(b"1}\n");
        assert!(large.len() == 20 << 20 && large.is_unique(), "what came after it holds nothing of it");
        assert!(lines.buffer().capacity() < 2 << 20);
        assert_eq!(drain(&mut lines), [frame("{\"next\":1}")]);
    }

    proptest! {
        #[test]
        fn any_chunk_borders_give_the_same_lines(
            texts in prop::collection::vec("[a-z ]{0,12}", 0..12), cuts in prop::collection::vec(1..9usize, 1..40),
        ) {
            let stream = texts.iter().map(|t| format!("{t}\n")).collect::<String>().into_bytes();
            let mut whole = lines(8);
            whole.buffer().extend_from_slice(&stream);
            let (mut pieces, mut seen, mut at) = (lines(8), Vec::new(), 0);
            for cut in cuts.iter().cycle() {
                if at == stream.len() { break }
                let end = (at + cut).min(stream.len());
                pieces.buffer().extend_from_slice(&stream[at..end]);
                seen.extend(drain(&mut pieces));
                at = end;
            }
            // That a line goes on is told of only where it was met half.
            seen.retain(|line| !matches!(line, Line::Untaken { tail: None, .. }));
            prop_assert_eq!(seen, drain(&mut whole));
        }
    }
}
