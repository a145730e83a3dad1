//! A connection's bytes, as a client of HTTP/2 sends and takes them.

use crate::listen::timeouts::ConnectionWatch;
use crate::memory::Refusals;
use crate::runtime::watched::{Credit, Frames, Watch};
use std::io;
use std::sync::Arc;

/// After so many frames that were too many the connection is closed without a word.
const SPOILT_MAX: u64 = 1000;

/// How a `GOAWAY` without a text begins, and how it ends where the protocol was broken.
const GOAWAY: [u8; 9] = [0, 0, 8, 7, 0, 0, 0, 0, 0];
const GOAWAY_BYTES: usize = 17;
const PROTOCOL_ERROR: [u8; 4] = [0, 0, 0, 1];
/// The last byte of the reason for who does too much.
const ENHANCE_YOUR_CALM: u8 = 11;

/// A connection's bytes, for its watch.
pub(super) struct Followed {
    watch: Arc<ConnectionWatch>,
    credit: Arc<Credit>,
    refusals: Refusals,
    frames: Frames,
}

impl Followed {
    pub(super) fn new(watch: Arc<ConnectionWatch>, credit: Arc<Credit>, refusals: Refusals) -> Self {
        Self { watch, credit, refusals, frames: Frames::of_client() }
    }
}

impl<S> Watch<S> for Followed {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.watch.face().bytes().read.increment(bytes.len() as u64);
        let before = self.frames.spoilt();
        let spoilt = self.frames.follow(bytes, &self.credit);
        if before == 0 && spoilt > 0 {
            self.refusals.turn_away("frames", &"a client of HTTP/2 sends frames that ask for nothing");
        }
        self.watch.reads_head(self.frames.is_within_head());
        if spoilt > SPOILT_MAX {
            return Err(io::Error::other("frames without end that ask for nothing"));
        }
        Ok(())
    }

    /// The library takes a frame that was spoilt for an error of the client, and says so. Its frames are none: there are too many.
    fn instead(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        if self.frames.spoilt() == 0 {
            return None;
        }
        let last = bytes.last_chunk::<GOAWAY_BYTES>()?;
        (last.starts_with(&GOAWAY) && last.ends_with(&PROTOCOL_ERROR)).then(|| {
            let mut other = bytes.to_vec();
            other.pop();
            other.push(ENHANCE_YOUR_CALM);
            other
        })
    }

    fn wrote(&mut self, is_pending: bool) {
        self.watch.wrote(is_pending);
    }

    fn sent(&mut self, count: usize) {
        self.watch.face().bytes().written.increment(count as u64);
    }
}
