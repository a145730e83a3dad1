//! Follows where each request on a connection begins and ends, and spoils a head of which two programs could think differently.

use super::upgrade::Switch;
use memchr::memchr;

/// So much of a line is looked at: enough for the names and values that say how long a body is.
const LOOKED_AT: usize = 64;
/// The most bytes of a request's head.
pub(crate) const HEAD_BYTES_MAX: usize = 32 * 1024;
/// The names of the lines that say how long a body is.
const CONTENT_LENGTH: &[u8] = b"content-length";
const TRANSFER_ENCODING: &[u8] = b"transfer-encoding";
/// A body that is said to be longer is one that nobody can count.
const LENGTH_MAX: u64 = u64::MAX - 2;
/// Replaces a byte that must not be taken, and every byte behind it: no head and no line of trailers may hold it, so a head with it is
/// answered with 400 and a body with it is broken.
const SPOILT: u8 = 0;

/// The requests of one connection, as their bytes come in.
#[derive(Debug, Default)]
pub(crate) struct Framing {
    at: At,
    /// The line that is coming in.
    line: Line,
    head: Head,
    /// Whether what comes is no request.
    switch: Switch,
}

/// What the next byte belongs to.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum At {
    /// The head of a request.
    #[default]
    Head,
    /// A body with so much left.
    Body(u64),
    /// The size of a chunk.
    Size,
    /// A chunk with so much left, its line end with it.
    Chunk(u64),
    /// What stands behind the last chunk.
    Trailers,
    /// The head of a request was in doubt: the connection is closed with its answer.
    SpoiltHead,
    /// The framing of a body was in doubt: the connection is closed.
    SpoiltBody,
    /// Another protocol is spoken.
    Switched,
}

/// What is known of the head that is coming in.
#[derive(Debug, Default)]
struct Head {
    has_begun: bool,
    /// How much of it came in.
    bytes: usize,
    length: Option<u64>,
    is_chunked: bool,
}

/// A line, as far as it came.
#[derive(Debug)]
struct Line {
    begin: [u8; LOOKED_AT],
    length: usize,
    last: u8,
}

impl Default for Line {
    fn default() -> Self {
        Self { begin: [0; LOOKED_AT], length: 0, last: 0 }
    }
}

impl Line {
    fn push(&mut self, bytes: &[u8]) {
        let Some(last) = bytes.last() else { return };
        self.last = *last;
        if let Some(room) = self.begin.get_mut(self.length..) {
            let taken = room.len().min(bytes.len());
            room[..taken].copy_from_slice(&bytes[..taken]);
        }
        self.length = self.length.saturating_add(bytes.len());
    }

    /// What it is, where it has ended.
    fn whole(&self) -> Option<Whole<'_>> {
        Whole::of(&self.begin[..self.length.min(LOOKED_AT)], self.length, self.last)
    }
}

/// A line that has ended.
struct Whole<'a> {
    /// What is looked at of it.
    text: &'a [u8],
    /// Whether that is all of it.
    is_all: bool,
}

impl<'a> Whole<'a> {
    /// The line that begins so. `None` where it does not end as a line must: some programs take a bare line feed for the end of a
    /// line, others for a part of it.
    fn of(begin: &'a [u8], length: usize, last: u8) -> Option<Self> {
        let text = &begin[..length.saturating_sub(1).min(LOOKED_AT)];
        (last == b'\r').then_some(Self { text, is_all: length <= LOOKED_AT })
    }
}

impl Framing {
    /// Of a connection that may go over to another protocol.
    pub(crate) fn until(switch: Switch) -> Self {
        Self { switch, ..Self::default() }
    }

    /// Another protocol is spoken from now on.
    pub(crate) fn end(&mut self) {
        (self.at, self.head) = (At::Switched, Head::default());
    }

    /// Follows bytes that came in. The byte that makes a request doubtful, and all bytes behind it, are replaced before anyone takes them.
    pub(crate) fn follow(&mut self, mut bytes: &mut [u8]) {
        while !bytes.is_empty() {
            let taken = match self.at {
                At::SpoiltHead | At::SpoiltBody => return bytes.fill(SPOILT),
                At::Switched => return,
                At::Body(left) => self.skip(left, bytes.len(), At::Body, At::Head),
                At::Chunk(left) => self.skip(left, bytes.len(), At::Chunk, At::Size),
                At::Head | At::Size | At::Trailers => self.line(bytes),
            };
            bytes = &mut bytes[taken..];
        }
    }

    /// The most bytes that may be read next, so that no head comes in that is longer than [`HEAD_BYTES_MAX`].
    pub(crate) fn room(&self) -> usize {
        if self.at == At::Head { HEAD_BYTES_MAX.saturating_sub(self.head.bytes).max(1) } else { usize::MAX }
    }

    /// Whether a request has begun and more of it is to come, or where it ends is in doubt.
    pub(crate) fn is_within(&self) -> bool {
        !matches!(self.at, At::Head | At::Switched) || self.head.has_begun
    }

    /// Whether the framing of a body was in doubt: nothing behind it is a request.
    pub(crate) fn is_body_spoilt(&self) -> bool {
        self.at == At::SpoiltBody
    }

    fn skip(&mut self, left: u64, there: usize, more: fn(u64) -> At, then: At) -> usize {
        let taken = left.min(there as u64);
        self.at = if left == taken { then } else { more(left - taken) };
        taken as usize
    }

    /// Takes bytes up to the end of a line, if it is there.
    fn line(&mut self, bytes: &mut [u8]) -> usize {
        let end = memchr(b'\n', bytes);
        let taken = end.map_or(bytes.len(), |end| end + 1);
        if self.at == At::Head {
            self.head.bytes += taken;
        }
        let Some(end) = end else {
            self.line.push(bytes);
            return taken;
        };
        let line = &bytes[..end];
        if self.at == At::Head && self.line.length == 0 && is_of_no_concern(line) {
            self.head.has_begun = true;
            return taken;
        }
        let (next, has_return) = if self.line.length == 0 {
            // It came in one piece, as nearly all do.
            let last = line.last().copied().unwrap_or_default();
            (Whole::of(line, end, last).and_then(|line| self.ended(&line)), last == b'\r')
        } else {
            let mut pieces = std::mem::take(&mut self.line);
            pieces.push(line);
            (pieces.whole().and_then(|line| self.ended(&line)), pieces.last == b'\r')
        };
        match next {
            Some(next) => self.at = next,
            None => self.spoil(&mut bytes[end], has_return),
        }
        taken
    }

    /// Has the line feed that makes a request doubtful refused by whoever reads on: each part of a request is broken by another byte.
    fn spoil(&mut self, line_feed: &mut u8, has_return: bool) {
        if self.switch.is_on() {
            // It is no request: the client has seen the answer before the connection was handed over.
            return self.end();
        }
        match self.at {
            // A size and its extensions are broken by a bare line feed itself, and extensions by nothing else.
            At::Size if !has_return => {}
            // A return that no line feed follows breaks the trailers; most other bytes are a part of them.
            At::Trailers => *line_feed = b'\r',
            _ => *line_feed = SPOILT,
        }
        self.at = if self.at == At::Head { At::SpoiltHead } else { At::SpoiltBody };
    }

    /// What comes behind a line that has ended; `None` where that is in doubt.
    fn ended(&mut self, line: &Whole<'_>) -> Option<At> {
        match self.at {
            At::Size => Some(match size(line.text)? {
                0 => At::Trailers,
                size => At::Chunk(size.checked_add(2)?),
            }),
            At::Trailers if line.text.is_empty() => Some(At::Head),
            At::Head if line.text.is_empty() && self.head.has_begun => {
                let head = std::mem::take(&mut self.head);
                if head.bytes > HEAD_BYTES_MAX {
                    return None;
                }
                match (head.length, head.is_chunked) {
                    // Whoever goes by the one sees another request than who goes by the other.
                    (Some(_), true) => None,
                    (None, true) => Some(At::Size),
                    (None | Some(0), false) => Some(At::Head),
                    (Some(length), false) => Some(At::Body(length)),
                }
            }
            At::Head => {
                self.field(line)?;
                self.head.has_begun |= !line.text.is_empty();
                Some(At::Head)
            }
            other => Some(other),
        }
    }

    /// Notes what a line of a head says of the body.
    fn field(&mut self, line: &Whole<'_>) -> Option<()> {
        let Whole { text, is_all } = *line;
        let Some((name, value)) = memchr(b':', text).map(|colon| (&text[..colon], text[colon + 1..].trim_ascii()))
        else {
            return Some(());
        };
        if name.eq_ignore_ascii_case(TRANSFER_ENCODING) {
            // A second one, and any other coding, is read by some and not by others.
            let is_plain = value.eq_ignore_ascii_case(b"chunked") && is_all;
            if std::mem::replace(&mut self.head.is_chunked, true) || !is_plain {
                return None;
            }
        } else if name.eq_ignore_ascii_case(CONTENT_LENGTH) {
            let length =
                std::str::from_utf8(value).ok().filter(|value| value.bytes().all(|byte| byte.is_ascii_digit()));
            let length = length.and_then(|value| value.parse().ok());
            let length = length.filter(|length| is_all && *length <= LENGTH_MAX)?;
            if self.head.length.replace(length).is_some_and(|before| before != length) {
                return None;
            }
        }
        Some(())
    }
}

/// Whether a line of a head ends as it must and says nothing of the body, as most do: a colon stands elsewhere than behind one of the
/// names that do.
fn is_of_no_concern(line: &[u8]) -> bool {
    let behind = match line {
        [b'c' | b'C', .., b'\r'] => CONTENT_LENGTH.len(),
        [b't' | b'T', .., b'\r'] => TRANSFER_ENCODING.len(),
        line => return matches!(line, [_, .., b'\r']),
    };
    line.get(behind) != Some(&b':')
}

/// The size of a chunk; what stands behind it says nothing of the size.
fn size(line: &[u8]) -> Option<u64> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let text = std::str::from_utf8(&line[..digits]).ok()?;
    u64::from_str_radix(text, 16).ok().filter(|_| digits <= 15)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What is left of a text when it comes in these pieces.
    fn followed(text: &str, size: usize) -> Vec<u8> {
        let (mut framing, mut bytes) = (Framing::default(), text.as_bytes().to_vec());
        bytes.chunks_mut(size).for_each(|piece| framing.follow(piece));
        bytes
    }

    const SOUND: &str = "\r\nPOST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\n\n\nxGET / HTTP/1.1\r\nhost: a\r\n\r\n\
                         POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\na\nb\r\n0\r\nx: y\r\n\r\nGET / HTTP/1.1\r\n\r\n";

    #[test]
    fn a_head_that_two_programs_could_take_apart_differently_is_spoilt() {
        for doubtful in [
            "GET / HTTP/1.1\nhost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nhost: a\n\r\n",
            "GET / HTTP/1.1\r\nhost: a\r\n\n",
            "\nGET / HTTP/1.1\r\nhost: a\r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nTRANSFER-ENCODING: chunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\nabcd",
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\ntransfer-encoding: identity, chunked\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
            "POST / HTTP/1.1\r\ncontent-length: +3\r\n\r\nabc",
            "POST / HTTP/1.1\r\ncontent-length: 18446744073709551615\r\n\r\nabc",
            "POST / HTTP/1.1\r\ncontent-length: 18446744073709551616\r\n\r\nabc",
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3;x\ny\r\nabc\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0;x\ny\r\n\r\n",
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx: y\nz: z\r\n\r\n",
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\n",
        ] {
            // Also behind requests that are sound.
            for before in ["", SOUND] {
                let text = format!("{before}{doubtful}{SOUND}");
                for size in [1, 7, 4096] {
                    let spoilt = followed(&text, size);
                    assert!(spoilt.ends_with(&[SPOILT; SOUND.len()]), "what follows is no request: {text:?}");
                    assert!(spoilt[..before.len()] == text.as_bytes()[..before.len()]);
                }
            }
        }
    }

    #[test]
    fn a_bare_line_feed_is_left_where_only_that_breaks_a_body() {
        let chunked = "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n";
        for (body, left) in [("3;x\ny", "3;x\n\0"), ("0\r\nx: y\nz", "0\r\nx: y\r\0"), ("0\r\n\nz", "0\r\n\r\0")] {
            assert_eq!(followed(&format!("{chunked}{body}"), 1), format!("{chunked}{left}").as_bytes());
        }
    }

    #[test]
    fn a_head_comes_in_to_its_limit_and_no_further() {
        let mut framing = Framing::default();
        framing.follow(&mut b"GET / HTTP/1.1\r\nx: ".to_vec());
        framing.follow(&mut vec![b'a'; 30 * 1024]);
        let left = framing.room();
        assert_eq!(left, HEAD_BYTES_MAX - 19 - 30 * 1024);
        framing.follow(&mut vec![b'a'; left]);
        assert_eq!(framing.room(), 1);
        framing.follow(&mut b"a\r\n\r\n".to_vec());
        assert!(framing.at == At::SpoiltHead && !framing.is_body_spoilt());
    }

    proptest! {
        #[test]
        fn what_is_sound_passes_as_it_is_in_whatever_pieces(size in 1..200_usize, body in "[\\n -~]{0,40}") {
            let more = format!("{SOUND}POST / HTTP/1.1\r\ncontent-length: {}\r\nx: y\r\n\r\n{body}{SOUND}", body.len());
            prop_assert_eq!(followed(&more, size), more.as_bytes());
        }
    }
}
