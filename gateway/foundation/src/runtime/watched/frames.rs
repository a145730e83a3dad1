//! Follows the frames of HTTP/2 that a peer sends: a head that never ends, and frames that ask for nothing.
//!
//! A frame that is no part of a message costs work and often an answer: settings, pings, resets, windows that open by a byte, and interim
//! heads (1xx) of a server. The library that reads them bounds what it keeps of them, and not how many there are. Control frames and
//! blank messages of a WebSocket are held within the same measure.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// So many frames that ask for nothing may come at once, and so many a second.
const AT_ONCE: u64 = 1000;
const A_SECOND: u64 = 100;
/// Another one is earned with so many bytes that the peer is sent: it says that it has room for more.
const BYTES_FOR_ONE: usize = 1024;

/// What a connection begins with, by bytes.
const PREFACE: usize = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".len();
/// The head of a frame: length, kind, flags, stream.
const FRAME_HEAD: usize = 9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// Streams with an even number are the server's, and it opens none: a frame of such a one is an error of the whole connection.
const NOBODYS: u8 = 2;

/// How many frames that ask for nothing may still come.
#[derive(Debug)]
pub struct Credit(Mutex<Left>);

#[derive(Debug)]
struct Left {
    frames: u64,
    since: Instant,
}

impl Default for Credit {
    fn default() -> Self {
        Self(Mutex::new(Left { frames: AT_ONCE, since: Instant::now() }))
    }
}

impl Credit {
    /// A part of a message goes out, of so many bytes, with which so many frames are earned besides those for its bytes.
    pub fn earn(&self, frames: u64, bytes: usize) {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        left.frames = (left.frames + frames + (bytes / BYTES_FOR_ONE) as u64).min(AT_ONCE);
    }

    /// Whether one more may come, with so many bytes that ask for nothing.
    pub fn spend(&self, bytes: usize) -> bool {
        let cost = 1 + (bytes / BYTES_FOR_ONE) as u64;
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if left.frames < cost {
            let earned = left.since.elapsed().as_millis() as u64 * A_SECOND / 1000;
            left.since += Duration::from_millis(earned * 1000 / A_SECOND);
            left.frames = (left.frames + earned).min(AT_ONCE);
        }
        let rest = left.frames.checked_sub(cost);
        left.frames = rest.unwrap_or(left.frames);
        rest.is_some()
    }
}

/// The frames of one connection, as their bytes come in.
#[derive(Debug)]
pub struct Frames {
    /// What is still to come of the preface.
    preface: usize,
    head: [u8; FRAME_HEAD],
    /// How much of it is there.
    filled: usize,
    /// How much is left of a frame behind its head.
    left: usize,
    /// A head asks for something: it is that of a request.
    heads_ask: bool,
    /// A head is coming in, or what a connection begins with.
    is_within_head: bool,
    /// It ends with this frame.
    ends_head: bool,
    /// How many frames were too many.
    spoilt: u64,
}

impl Frames {
    /// Those of a client.
    pub fn of_client() -> Self {
        Self {
            preface: PREFACE,
            head: [0; FRAME_HEAD],
            filled: 0,
            left: 0,
            heads_ask: true,
            is_within_head: true,
            ends_head: true,
            spoilt: 0,
        }
    }

    /// Those of a server. Its heads ask for nothing: how many there are of one answer is its choice.
    pub fn of_server() -> Self {
        Self { preface: 0, heads_ask: false, ..Self::of_client() }
    }

    /// Whether a head is coming in, or what a connection begins with.
    pub fn is_within_head(&self) -> bool {
        self.is_within_head
    }

    /// How many frames were too many.
    pub fn spoilt(&self) -> u64 {
        self.spoilt
    }

    /// Follows what has come in, and spoils frames that are too many, so that whoever reads on ends the connection and says so. How
    /// many were too many by now.
    pub fn follow(&mut self, bytes: &mut [u8], credit: &Credit) -> u64 {
        let mut at = self.preface.min(bytes.len());
        self.preface -= at;
        while at < bytes.len() {
            if self.filled < FRAME_HEAD {
                self.head[self.filled] = bytes[at];
                self.filled += 1;
                at += 1;
                if self.filled < FRAME_HEAD {
                    continue;
                }
                self.begins(&mut bytes[at - 1], credit);
            }
            let passed = self.left.min(bytes.len() - at);
            self.left -= passed;
            at += passed;
            if self.left == 0 {
                self.filled = 0;
                self.is_within_head &= !self.ends_head;
            }
        }
        self.spoilt
    }

    /// A frame begins, whose head ends with this byte.
    fn begins(&mut self, last: &mut u8, credit: &Credit) {
        let [high, middle, low, kind, flags, ..] = self.head;
        self.left = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        let asks = match kind {
            HEADERS => self.heads_ask,
            DATA => self.left > 0 || flags & END_STREAM != 0,
            _ => false,
        };
        if !asks && !credit.spend(0) {
            self.spoilt += 1;
            *last = NOBODYS;
        }
        if matches!(kind, HEADERS | CONTINUATION) {
            self.is_within_head = true;
            self.ends_head = flags & END_HEADERS != 0;
        }
    }
}
