//! Follows the frames that a client sends: a head that never ends, and frames that ask for nothing.
//!
//! A frame that is no part of a request costs work and an answer: settings, pings, resets, windows that open by a byte. The library that
//! reads them bounds what it keeps of them, and not how many there are.

use crate::downstream::listen::timeouts::ConnectionWatch;
use crate::memory::Refusals;
use crate::runtime::watched::Watch;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// So many frames without a request may come at once, and so many a second.
const AT_ONCE: u64 = 1000;
const A_SECOND: u64 = 100;
/// So many are earned with a part of an answer, and another one with so many bytes of it.
const WITH_A_PART: u64 = 4;
const BYTES_FOR_ONE: usize = 1024;
/// After so many that were too many the connection is closed without a word.
const SPOILT_MAX: u64 = 1000;

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

/// How many frames without a request may still come.
#[derive(Debug)]
pub(super) struct Credit(Mutex<Left>);

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
    /// So many bytes of an answer go out, for which the client says that it has room for more.
    pub(super) fn earn(&self, bytes: usize) {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        left.frames = (left.frames + WITH_A_PART + (bytes / BYTES_FOR_ONE) as u64).min(AT_ONCE);
    }

    /// Whether one more may come.
    fn spend(&self) -> bool {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if left.frames == 0 {
            let earned = left.since.elapsed().as_millis() as u64 * A_SECOND / 1000;
            if earned == 0 {
                return false;
            }
            left.since += Duration::from_millis(earned * 1000 / A_SECOND);
            left.frames = earned.min(AT_ONCE);
        }
        left.frames -= 1;
        true
    }
}

/// The frames of one connection, as their bytes come in.
#[derive(Debug)]
struct Frames {
    /// What is still to come of the preface.
    preface: usize,
    head: [u8; FRAME_HEAD],
    /// How much of it is there.
    filled: usize,
    /// How much is left of a frame behind its head.
    left: usize,
    /// A request's head is coming in, or what a connection begins with.
    is_within_head: bool,
    /// It ends with this frame.
    ends_head: bool,
    /// How many frames were too many.
    spoilt: u64,
}

impl Default for Frames {
    fn default() -> Self {
        Self {
            preface: PREFACE,
            head: [0; FRAME_HEAD],
            filled: 0,
            left: 0,
            is_within_head: true,
            ends_head: true,
            spoilt: 0,
        }
    }
}

impl Frames {
    /// Follows what has come in, and spoils frames that are too many, so that whoever reads on ends the connection and says so. How
    /// many were too many by now.
    fn follow(&mut self, bytes: &mut [u8], credit: &Credit) -> u64 {
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
            HEADERS => true,
            DATA => self.left > 0 || flags & END_STREAM != 0,
            _ => false,
        };
        if !asks && !credit.spend() {
            self.spoilt += 1;
            *last = NOBODYS;
        }
        if matches!(kind, HEADERS | CONTINUATION) {
            self.is_within_head = true;
            self.ends_head = flags & END_HEADERS != 0;
        }
    }
}

/// A connection's bytes, for its watch.
pub(super) struct Followed {
    watch: Arc<ConnectionWatch>,
    credit: Arc<Credit>,
    refusals: Refusals,
    frames: Frames,
}

impl Followed {
    pub(super) fn new(watch: Arc<ConnectionWatch>, credit: Arc<Credit>, refusals: Refusals) -> Self {
        Self { watch, credit, refusals, frames: Frames::default() }
    }
}

impl<S> Watch<S> for Followed {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.watch.face().bytes().read.increment(bytes.len() as u64);
        let before = self.frames.spoilt;
        let spoilt = self.frames.follow(bytes, &self.credit);
        if before == 0 && spoilt > 0 {
            self.refusals.turn_away("frames", &"a client of HTTP/2 sends frames that ask for nothing");
        }
        self.watch.reads_head(self.frames.is_within_head);
        if spoilt > SPOILT_MAX {
            return Err(io::Error::other("frames without end that ask for nothing"));
        }
        Ok(())
    }

    fn wrote(&mut self, is_pending: bool) {
        self.watch.wrote(is_pending);
    }

    fn sent(&mut self, count: usize) {
        self.watch.face().bytes().written.increment(count as u64);
    }
}
