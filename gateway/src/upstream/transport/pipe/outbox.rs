//! What waits to be written on a pipe: whole frames, each of which can be taken out again while nothing of it is written.

use super::queue_shares::{QueueFull, QueueShares};
use crate::call::share::Share;
use crate::memory::account::Kind;
use crate::memory::budget::{Budget, Charge, Spent, UNCOUNTED};
use crate::metrics::messages;

/// What waits to be written.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// What the writer was never given.
    queue: Batch,
    /// What the writer could not write yet, while it waits for room.
    stuck: Option<Batch>,
    /// Where the next frame starts in all that was ever put in.
    end: u64,
    /// Where the first frame starts that the writer was never given.
    given: u64,
    /// How many bytes the writer has in hand just now.
    in_hand: usize,
    /// How much of all that waits is of each client.
    shares: QueueShares,
    /// What was given up meanwhile.
    late: Vec<u64>,
    is_closed: bool,
    /// The frame that is written in part and that nobody waits for any more.
    half: Option<u64>,
}

/// Frames one behind the other.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    bytes: Vec<u8>,
    /// Counts them.
    charge: Charge,
    parts: Vec<Part>,
    /// How much of the bytes is written.
    written: usize,
    /// The first frame that is not written whole, and where it starts in the bytes.
    first: usize,
    at: usize,
    /// The first frame that its client's share still has.
    shared: usize,
    /// How many bytes belong to frames that were taken out.
    dropped: usize,
}

#[derive(Debug)]
struct Part {
    /// Where it starts in all that was ever put in.
    start: u64,
    len: usize,
    is_out: bool,
    /// The client's share that it takes; `None`: it is the gateway's own.
    share: Option<Share>,
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

impl Outbox {
    /// Has room for one more frame of about this length, at once: what is large must not grow by doubling.
    pub(crate) fn has_room(&mut self, budget: &Budget, length: usize) -> Result<(), Spent> {
        let queue = &mut self.queue;
        let bytes = queue.bytes.len() + length;
        // A little of each connection is not counted, so that a plain small call pays nothing.
        if bytes > UNCOUNTED || !queue.charge.is_empty() {
            queue.charge.grow(budget, Kind::Queue, bytes)?;
        }
        queue.bytes.reserve(length);
        Ok(())
    }

    /// Whether a client's share, or the gateway itself, may put in a request of this length.
    pub(crate) fn admits(&self, share: Option<&Share>, length: usize) -> Result<(), QueueFull> {
        self.shares.admits(share, length, self.len())
    }

    /// As [`Self::admits`], of an answer or a notification.
    pub(crate) fn admits_message(&self, share: Option<&Share>, length: usize) -> Result<(), QueueFull> {
        self.shares.admits_message(share, length, self.len())
    }

    /// Puts a frame of a share in; where it starts. Not called once it is closed.
    pub(crate) fn put(&mut self, share: Option<Share>, write: impl FnOnce(&mut Vec<u8>)) -> u64 {
        let (start, from, before) = (self.end, self.queue.bytes.len(), self.len());
        write(&mut self.queue.bytes);
        messages::UPSTREAM.sent();
        self.queue.bytes.push(b'\n');
        let len = self.queue.bytes.len() - from;
        self.shares.add(share.as_ref(), start, len, before);
        self.queue.parts.push(Part { start, len, is_out: false, share });
        self.end += len as u64;
        start
    }

    /// How many bytes wait.
    pub(crate) fn len(&self) -> usize {
        self.queue.len() + self.in_hand + self.stuck.as_ref().map_or(0, Batch::len)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Gives the writer what waits, for which it leaves the batch that it has written; `None` once it is closed.
    pub(crate) fn take(&mut self, spare: &mut Batch) -> Option<Batch> {
        if self.is_closed {
            return None;
        }
        spare.settle(&mut self.shares);
        spare.forget();
        let left = self.stuck.take().map(|mut stuck| {
            stuck.compact();
            stuck
        });
        let batch = left.filter(|stuck| !stuck.is_written()).unwrap_or_else(|| {
            self.late.clear();
            self.half = None;
            self.given = self.end;
            self.queue.compact();
            std::mem::replace(&mut self.queue, std::mem::take(spare))
        });
        self.in_hand = batch.len();
        Some(batch)
    }

    /// Takes back what the writer cannot write yet.
    pub(crate) fn put_back(&mut self, mut batch: Batch) {
        self.in_hand = 0;
        if self.is_closed {
            return;
        }
        for start in self.late.drain(..) {
            if batch.take_back(start, &mut self.shares) == TakenBack::Half {
                self.half = Some(start);
            }
        }
        batch.settle(&mut self.shares);
        // What was written in part by then may be written whole by now.
        self.half = self.half.filter(|half| batch.half() == Some(*half));
        self.stuck = Some(batch);
    }

    /// The frame that starts there is not to be written.
    pub(crate) fn take_back(&mut self, start: u64) -> TakenBack {
        if self.is_closed {
            return TakenBack::Sent;
        }
        if start >= self.given {
            return self.queue.take_back(start, &mut self.shares);
        }
        let taken = match &mut self.stuck {
            Some(stuck) => stuck.take_back(start, &mut self.shares),
            None if self.in_hand > 0 => {
                self.late.push(start);
                TakenBack::Sent
            }
            None => TakenBack::Sent,
        };
        if taken == TakenBack::Half {
            self.half = Some(start);
        }
        taken
    }

    /// Whether a frame is written in part that nobody waits for any more.
    pub(crate) fn has_half(&self) -> bool {
        self.half.is_some()
    }

    /// How many frames the writer cannot write, and how many of their bytes are written.
    pub(crate) fn stuck(&self) -> Option<(usize, usize)> {
        let stuck = self.stuck.as_ref()?;
        let waits = |batch: &Batch| batch.parts[batch.first..].iter().filter(|part| !part.is_out).count();
        Some((waits(stuck) + waits(&self.queue), stuck.written))
    }

    /// Nothing more is written. Of frames that start there or later nothing was.
    pub(crate) fn close(&mut self) -> u64 {
        self.is_closed = true;
        let whole = self.stuck.as_ref().and_then(Batch::first_whole).unwrap_or(self.given);
        (self.queue, self.stuck, self.in_hand) = (Batch::default(), None, 0);
        self.shares.clear();
        whole
    }
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

    /// An empty one that keeps its room, unless that is more than `most`, and that knows which frames were written.
    pub(crate) fn emptied(mut self, most: usize) -> Self {
        if self.bytes.capacity() > most {
            self.bytes = Vec::new();
        }
        self.bytes.clear();
        Self { bytes: self.bytes, parts: self.parts, first: self.first, shared: self.shared, ..Self::default() }
    }

    /// Frames that are written take nothing of a share any more.
    fn settle(&mut self, shares: &mut QueueShares) {
        for part in &self.parts[self.shared..self.first] {
            shares.remove(part.share.as_ref(), part.start, part.len);
        }
        self.shared = self.first;
        if let Some(part) = self.parts.get(self.first) {
            shares.shrink(part.start, part.len - (self.written - self.at));
        }
    }

    /// Forgets the frames of a batch that is written.
    fn forget(&mut self) {
        match self.bytes.capacity() {
            0 => self.parts = Vec::new(),
            _ => self.parts.clear(),
        }
        (self.first, self.shared) = (0, 0);
    }

    /// How many bytes wait in it.
    fn len(&self) -> usize {
        self.bytes.len() - self.written - self.dropped
    }

    /// The frame that is written in part.
    fn half(&self) -> Option<u64> {
        (self.written > self.at).then(|| self.parts[self.first].start)
    }

    /// Where the first frame starts of which nothing is written.
    fn first_whole(&self) -> Option<u64> {
        self.parts.get(self.first + usize::from(self.written > self.at)).map(|part| part.start)
    }

    fn take_back(&mut self, start: u64, shares: &mut QueueShares) -> TakenBack {
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
    fn compact(&mut self) {
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
        if bytes.is_empty() {
            // Megabytes that nobody wants are not kept for whatever comes next.
            *bytes = Vec::new();
        }
        let mut at = 0;
        self.parts.retain(|part| {
            at += 1;
            at <= first || !part.is_out
        });
        self.dropped = 0;
        self.charge.shrink(self.bytes.len());
    }
}

#[cfg(test)]
mod tests;
