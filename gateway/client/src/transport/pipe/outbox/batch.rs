//! The frames of one write, one behind the other; the memory of the frames and their records is charged to the budget.

use crate::call::share::Share;
use crate::memory::account::Kind;
use crate::memory::budget::{Budget, Charge, Spent, UNCOUNTED};
use crate::transport::pipe::queue_shares::QueueShares;

/// Frames one behind the other.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(super) bytes: Vec<u8>,
    pub(super) parts: Vec<Part>,
    /// Counts the capacity of both.
    charge: Charge,
    /// How much of the bytes is written.
    pub(super) written: usize,
    /// The first frame that is not written whole, and where it starts in the bytes.
    pub(super) first: usize,
    at: usize,
    /// The first frame that its client's share still has.
    shared: usize,
    /// How many bytes belong to frames that were taken out.
    dropped: usize,
}

/// What became of a frame that is not to be written any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TakenBack {
    /// Nothing of it was written, and nothing will be.
    Whole,
    /// A part of it was written.
    Half,
    /// All of it may have been written.
    Sent,
}

#[derive(Debug)]
pub(super) struct Part {
    /// Where it starts in all that was ever put in.
    pub(super) start: u64,
    pub(super) len: usize,
    pub(super) is_out: bool,
    /// The client's share that it takes; `None`: it is the gateway's own.
    pub(super) share: Option<Share>,
}

impl Batch {
    /// What is still to be written.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.bytes[self.written..]
    }

    /// So many bytes were written.
    pub(crate) fn advance(&mut self, count: usize) {
        self.written += count;
        while let Some(part) = self.parts.get(self.first).filter(|part| self.at + part.len <= self.written) {
            self.at += part.len;
            self.first += 1;
        }
    }

    pub(crate) fn is_written(&self) -> bool {
        self.written == self.bytes.len()
    }

    /// Appends a frame of about this length and a newline, with room for its record, and charges the budget for both; returns the
    /// length. On an error nothing is appended.
    pub(super) fn append(
        &mut self,
        budget: &Budget,
        length: usize,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<usize, Spent> {
        let from = self.bytes.len();
        let (bytes, parts) = (grown(&self.bytes, length + 1), grown(&self.parts, 1));
        self.count(budget, taken(bytes, parts))?;
        self.bytes.reserve_exact(bytes - from);
        self.parts.reserve_exact(parts - self.parts.len());
        write(&mut self.bytes);
        self.bytes.push(b'\n');
        // Unusual capabilities make a frame longer than expected.
        if let Err(spent) = self.count(budget, self.taken()) {
            self.bytes.truncate(from);
            return Err(spent);
        }
        Ok(self.bytes.len() - from)
    }

    /// Charges the budget for so many bytes in all. A little of each connection is not counted, so that a plain small call pays
    /// nothing.
    fn count(&mut self, budget: &Budget, taken: usize) -> Result<(), Spent> {
        if taken <= UNCOUNTED && self.charge.is_empty() {
            return Ok(());
        }
        self.charge.grow(budget, Kind::Queue, taken)
    }

    fn taken(&self) -> usize {
        taken(self.bytes.capacity(), self.parts.capacity())
    }

    /// An empty batch that keeps its room, unless that is more than `most`, and that knows which frames were written.
    pub(crate) fn emptied(mut self, most: usize) -> Self {
        if self.taken() > most {
            self.bytes = Vec::new();
        }
        self.bytes.clear();
        Self { bytes: self.bytes, parts: self.parts, first: self.first, shared: self.shared, ..Self::default() }
    }

    /// Frames that are written take nothing of a share any more.
    pub(super) fn settle(&mut self, shares: &mut QueueShares) {
        for part in &self.parts[self.shared..self.first] {
            shares.remove(part.share.as_ref(), part.start, part.len);
        }
        self.shared = self.first;
        if let Some(part) = self.parts.get(self.first) {
            shares.shrink(part.start, part.len - (self.written - self.at));
        }
    }

    /// Forgets the frames of a batch that is written.
    pub(super) fn forget(&mut self) {
        match self.bytes.capacity() {
            0 => self.parts = Vec::new(),
            _ => self.parts.clear(),
        }
        (self.first, self.shared) = (0, 0);
    }

    /// How many bytes wait in it.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.written - self.dropped
    }

    /// The frame that is written in part.
    pub(super) fn half(&self) -> Option<u64> {
        (self.written > self.at).then(|| self.parts[self.first].start)
    }

    /// Where the first frame starts of which nothing is written.
    pub(super) fn first_whole(&self) -> Option<u64> {
        self.parts.get(self.first + usize::from(self.written > self.at)).map(|part| part.start)
    }

    pub(super) fn take_back(&mut self, start: u64, shares: &mut QueueShares) -> TakenBack {
        let Ok(found) = self.parts[self.first..].binary_search_by_key(&start, |part| part.start) else {
            return TakenBack::Sent;
        };
        if found == 0 && self.written > self.at {
            return TakenBack::Half;
        }
        let part = &mut self.parts[self.first + found];
        if !std::mem::replace(&mut part.is_out, true) {
            self.dropped += part.len;
            shares.remove(part.share.as_ref(), part.start, part.len);
        }
        // Each byte is moved a bounded number of times, however many frames are taken out one by one.
        if self.dropped > self.len() {
            self.compact();
        }
        TakenBack::Whole
    }

    /// Drops the bytes of what was taken out.
    pub(super) fn compact(&mut self) {
        if self.dropped == 0 {
            return;
        }
        let keep = usize::from(self.written > self.at);
        let (first, bytes) = (self.first + keep, &mut self.bytes);
        let mut from = self.at + self.parts[self.first..first].iter().map(|part| part.len).sum::<usize>();
        let mut to = from;
        for part in &self.parts[first..] {
            if !part.is_out {
                bytes.copy_within(from..from + part.len, to);
                to += part.len;
            }
            from += part.len;
        }
        bytes.truncate(to);
        let mut at = 0;
        self.parts.retain(|part| {
            at += 1;
            at <= first || !part.is_out
        });
        self.dropped = 0;
        // The room of frames that nobody wants is not kept for the next ones.
        if self.taken() > 2 * taken(self.bytes.len(), self.parts.len()) {
            self.bytes.shrink_to_fit();
            self.parts.shrink_to_fit();
        }
        self.charge.shrink(self.taken());
    }
}

/// The capacity of a buffer with room for so many more entries. A large buffer must not grow by doubling.
fn grown<T>(buffer: &Vec<T>, more: usize) -> usize {
    let (wanted, have) = (buffer.len() + more, buffer.capacity());
    if wanted <= have { have } else { wanted.max(have + have / 2) }
}

/// Memory of buffers of these capacities.
fn taken(bytes: usize, parts: usize) -> usize {
    bytes + parts * size_of::<Part>()
}
