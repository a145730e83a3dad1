//! WebSocket (RFC 6455), as a server or as a client: frames unmasked, fragments joined, checked and bounded; heads for what goes out.

use super::edges::Edges;
use super::store::{Store, Untaken};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

/// How much is read at once. A frame that is larger is put together in the store.
pub const READ_BYTES: usize = 16 * 1024;
/// What a key is answered with is made of it and this.
const WORD: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// The most bytes of a control frame.
const CONTROL_MAX: u64 = 125;

/// What a frame carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// More of a message.
    Continuation = 0,
    /// A text message, or its beginning.
    Text = 1,
    /// The end of the connection.
    Close = 8,
    /// Asks for a pong.
    Ping = 9,
    /// Answers a ping.
    Pong = 10,
}

/// What came whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// A text message: UTF-8, trimmed, never blank.
    Text(Bytes),
    /// A text message for which there was no room; told at its end, with its first and its last bytes.
    Untaken {
        /// Why.
        why: Untaken,
        /// Its first bytes.
        head: Bytes,
        /// Its last bytes.
        tail: Bytes,
    },
    /// A piece of a message of which more comes.
    Part,
    /// What asks for nothing, of so many bytes: an empty piece of a message of which more comes, or a message of blanks alone.
    Blank(usize),
    /// To be answered with the same bytes.
    Ping(Bytes),
    /// An answer to a ping.
    Pong,
    /// The other side closes, with a code and a reason where it says any. Nothing follows.
    Close(Option<(u16, Bytes)>),
}

/// Why a connection cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The protocol was broken.
    #[error("{0}")]
    Protocol(&'static str),
    /// A close frame has a code that is for use within a program alone, or for nothing.
    #[error("a close frame with {0}, which is not a valid close code")]
    CloseCode(u16),
    /// A binary message came.
    #[error("a binary message; send text messages")]
    Binary,
    /// A text is not UTF-8.
    #[error("a text that is not UTF-8")]
    NotText,
    /// A message is longer than the limit.
    #[error("a message longer than `server.max_body`")]
    TooLong,
}

impl Fault {
    /// The code that a connection is closed with.
    pub fn code(self) -> u16 {
        match self {
            Self::Protocol(_) | Self::CloseCode(_) => 1002,
            Self::Binary => 1003,
            Self::NotText => 1007,
            Self::TooLong => 1009,
        }
    }
}

/// The head of a frame that was read.
#[derive(Debug, Clone, Copy)]
struct Frame {
    kind: Kind,
    is_last: bool,
    /// How much of it is still to come.
    left: u64,
    /// Turned so that its first byte is for the next byte.
    mask: [u8; 4],
}

/// Joins what is read to messages.
#[derive(Debug)]
pub struct Messages<S> {
    buffer: BytesMut,
    frame: Option<Frame>,
    /// What came of a message before, where it did not come in one piece.
    store: S,
    /// Both ends of that.
    edges: Edges,
    /// Frames have a mask: those of a client have one, those of a server have none.
    is_masked: bool,
    /// How much came of the message that goes on, with what its frame announced; `None` between messages.
    so_far: Option<usize>,
    /// How many messages have ended.
    ended: u64,
    /// There was no room for the message that goes on.
    is_dropped: bool,
    max: usize,
}

impl<S: Store> Messages<S> {
    /// Messages of a client, of at most `max` bytes. These came before.
    pub fn new(max: usize, store: S, early: &[u8]) -> Self {
        let (buffer, edges) = (BytesMut::from(early), Edges::default());
        Self { buffer, frame: None, store, edges, is_masked: true, so_far: None, ended: 0, is_dropped: false, max }
    }

    /// Messages of a server.
    pub fn of_server(max: usize, store: S) -> Self {
        Self { is_masked: false, ..Self::new(max, store, b"") }
    }

    /// Where to read into; beside it where a message is being put together, while there is one.
    pub fn reading(&mut self) -> (&mut BytesMut, Option<&mut S>) {
        if self.buffer.capacity() - self.buffer.len() < READ_BYTES / 4 {
            self.buffer.reserve(READ_BYTES);
        }
        (&mut self.buffer, (self.store.held() > 0).then_some(&mut self.store))
    }

    /// What has begun and not ended: the number of its message, and how much of that has come. `None` between messages.
    pub fn begun(&self) -> Option<(u64, usize)> {
        let left = self.frame.filter(|frame| (frame.kind as u8) < Kind::Close as u8).map_or(0, |frame| frame.left);
        let has_begun = self.so_far.is_some() || self.frame.is_some() || !self.buffer.is_empty();
        let come = self.so_far.unwrap_or_default() - left as usize + self.buffer.len().min(left as usize);
        has_begun.then_some((self.ended, come))
    }

    /// What was put together was taken away: the message is not taken.
    pub fn give_up(&mut self) {
        self.store.forget();
        self.is_dropped = true;
    }

    /// The next message of what was read.
    pub fn next_message(&mut self) -> Result<Option<Message>, Fault> {
        loop {
            let Some(frame) = self.frame else {
                if !self.head()? {
                    return Ok(None);
                }
                continue;
            };
            let there = self.buffer.len() as u64;
            if there < frame.left && frame.left <= READ_BYTES as u64 {
                return Ok(None);
            }
            let mut part = self.buffer.split_to(there.min(frame.left) as usize);
            if self.is_masked {
                mask(&mut part, frame.mask);
            }
            let left = frame.left - part.len() as u64;
            if frame.kind as u8 >= Kind::Close as u8 {
                self.frame = None;
                return control(frame.kind, &part.freeze()).map(Some);
            }
            let mut mask = frame.mask;
            mask.rotate_left(part.len() % 4);
            self.frame = (left > 0).then_some(Frame { left, mask, ..frame });
            let message = self.take(part, left == 0 && frame.is_last)?;
            return Ok((left == 0).then_some(message));
        }
    }

    /// Reads the head of a frame; false where it is not there yet. What is wrong is found as early as it can be.
    fn head(&mut self) -> Result<bool, Fault> {
        let [first, second, rest @ ..] = &self.buffer[..] else {
            return match self.buffer.first() {
                Some(first) => self.opened(*first).map(|_| false),
                None => Ok(false),
            };
        };
        let (kind, is_last) = self.opened(*first)?;
        match (second & 0x80 != 0, self.is_masked) {
            (false, true) => return Err(Fault::Protocol("a frame without a mask")),
            (true, false) => return Err(Fault::Protocol("a frame with a mask")),
            _ => {}
        }
        let wide = match second & 0x7f {
            127 => 8,
            126 => 2,
            _ => 0,
        };
        let is_control = kind as u8 >= Kind::Close as u8;
        if is_control && wide > 0 {
            return Err(Fault::Protocol("a control frame of more than 125 bytes"));
        }
        let Some((length, rest)) = rest.split_at_checked(wide) else { return Ok(false) };
        let length = match wide {
            0 => u64::from(second & 0x7f),
            _ => length.iter().fold(0, |length, byte| length << 8 | u64::from(*byte)),
        };
        let shortest = if wide == 8 { 1 << 16 } else { CONTROL_MAX + 1 };
        if length > i64::MAX as u64 || (wide > 0 && length < shortest) {
            return Err(Fault::Protocol("a length that is not written in the shortest way"));
        }
        if !is_control && length > (self.max - self.so_far.unwrap_or_default()) as u64 {
            return Err(Fault::TooLong);
        }
        let mask = match self.is_masked {
            true => rest.first_chunk().copied(),
            false => Some([0; 4]),
        };
        let Some(mask) = mask else { return Ok(false) };
        self.frame = Some(Frame { kind, is_last, left: length, mask });
        let _head = self.buffer.split_to(2 + wide + if self.is_masked { 4 } else { 0 });
        if !is_control {
            self.so_far = Some(self.so_far.unwrap_or_default() + length as usize);
        }
        Ok(true)
    }

    /// What the first byte of a frame says.
    fn opened(&self, first: u8) -> Result<(Kind, bool), Fault> {
        let is_last = first & 0x80 != 0;
        if first & 0x70 != 0 {
            return Err(Fault::Protocol("a reserved bit is set"));
        }
        let (kind, is_open) = (first & 0x0f, self.so_far.is_some());
        let kind = match kind {
            0 if !is_open => return Err(Fault::Protocol("a continuation of no message")),
            1 | 2 if is_open => return Err(Fault::Protocol("a message within another one")),
            0 => Kind::Continuation,
            1 => Kind::Text,
            2 => return Err(Fault::Binary),
            8..=10 if !is_last => return Err(Fault::Protocol("a control frame in pieces")),
            8 => Kind::Close,
            9 => Kind::Ping,
            10 => Kind::Pong,
            _ => return Err(Fault::Protocol("an unknown opcode")),
        };
        Ok((kind, is_last))
    }

    /// Takes a piece of a message.
    fn take(&mut self, part: BytesMut, is_whole: bool) -> Result<Message, Fault> {
        let text = if is_whole && self.store.held() == 0 && !self.is_dropped {
            part.freeze()
        } else {
            self.edges.note(&part);
            self.is_dropped |= !self.is_dropped && !self.store.push(&part);
            if !is_whole {
                return Ok(if part.is_empty() { Message::Blank(0) } else { Message::Part });
            }
            let (head, tail) = self.edges.take();
            if std::mem::take(&mut self.is_dropped) {
                (self.so_far, self.ended) = (None, self.ended + 1);
                return Ok(Message::Untaken { why: Untaken::NoRoom, head, tail });
            }
            self.store.give()
        };
        self.edges.clear();
        (self.so_far, self.ended) = (None, self.ended + 1);
        if std::str::from_utf8(&text).is_err() {
            return Err(Fault::NotText);
        }
        let trimmed = text.trim_ascii();
        Ok(if trimmed.is_empty() { Message::Blank(text.len()) } else { Message::Text(text.slice_ref(trimmed)) })
    }
}

fn control(kind: Kind, bytes: &Bytes) -> Result<Message, Fault> {
    match kind {
        Kind::Ping => Ok(Message::Ping(bytes.clone())),
        Kind::Close => match &bytes[..] {
            [] => Ok(Message::Close(None)),
            [high, low, reason @ ..] => match u16::from_be_bytes([*high, *low]) {
                code if !may_be_sent(code) => Err(Fault::CloseCode(code)),
                _ if std::str::from_utf8(reason).is_err() => Err(Fault::NotText),
                code => Ok(Message::Close(Some((code, bytes.slice_ref(reason))))),
            },
            _ => Err(Fault::Protocol("a close frame of one byte")),
        },
        _ => Ok(Message::Pong),
    }
}

/// Whether a close code may stand in a frame: 1004, 1005, 1006 and 1015 are for use within a program alone.
fn may_be_sent(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}

/// Puts a mask on, or takes it off. The first byte of the mask is for the first byte.
pub fn mask(bytes: &mut [u8], mask: [u8; 4]) {
    let mut words = bytes.chunks_exact_mut(4);
    for word in &mut words {
        word.iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask);
    }
    words.into_remainder().iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask);
}

/// What a server answers a client's key with, in `Sec-WebSocket-Accept`.
pub fn accept(key: &[u8]) -> String {
    STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, &[key, WORD].concat()))
}

/// Writes the head of a frame with a whole message of this length.
pub fn write_head(kind: Kind, length: usize, out: &mut Vec<u8>) {
    out.push(0x80 | kind as u8);
    match length {
        0..=125 => out.push(length as u8),
        126..=0xffff => {
            out.push(126);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
        _ => {
            out.push(127);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
}

/// As [`write_head`], of a frame of a client. Its bytes are masked with the same mask.
pub fn write_masked_head(kind: Kind, length: usize, mask: [u8; 4], out: &mut Vec<u8>) {
    let second = out.len() + 1;
    write_head(kind, length, out);
    out[second] |= 0x80;
    out.extend_from_slice(&mask);
}

#[cfg(test)]
mod tests;
