//! What waits to be written on a pipe: whole frames, each of which can be taken out again while nothing of it is written.

// The frames of one write, one behind the other.
mod batch;

use super::queue_shares::{QueueFull, QueueShares};
use crate::call::share::Share;
use crate::health::CauseCode;
use crate::memory::budget::{Budget, Spent};
use crate::metrics::messages;
use batch::Part;
pub(crate) use batch::{Batch, TakenBack};
use bytes::Bytes;
use std::collections::VecDeque;

/// Answers to pings that wait while the writer is stuck. A peer that reads again has given up on older pings.
const PINGS_MAX: usize = 16;
/// Bytes of answers at once that wait, with their records, while the writer is stuck.
const AT_ONCE_MAX: usize = 64 * 1024;

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
    /// The budget that every frame and its record is charged to.
    budget: Budget,
    /// The newest answers to pings, which join the queue when the writer takes it.
    pings: VecDeque<Bytes>,
    /// Bytes of answers at once in the queue, with their records.
    at_once: usize,
    /// What was given up meanwhile.
    late: Vec<u64>,
    is_closed: bool,
    /// The frame that is written in part and that nobody waits for any more.
    half: Option<u64>,
}

/// The class of a frame, which decides its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameClass {
    /// A request to the upstream.
    Request,
    /// A notification, or the answer to a question that was put to a client.
    Message,
    /// An answer that the gateway gives to the upstream without asking a client.
    AtOnce,
}

/// The reason for which a frame is not queued. Nothing of it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PutError {
    /// The queue is full.
    #[error(transparent)]
    Full(#[from] QueueFull),
    /// The upstream asks and does not read the answers.
    #[error("{} KiB of answers to its own requests wait", AT_ONCE_MAX / 1024)]
    AnswersUnread,
    /// The budget is spent.
    #[error(transparent)]
    Memory(#[from] Spent),
}

impl PutError {
    pub(crate) fn code(self) -> CauseCode {
        match self {
            Self::Full(_) | Self::AnswersUnread => CauseCode::QueueFull,
            Self::Memory(_) => CauseCode::MemoryFull,
        }
    }
}

impl Outbox {
    /// An empty outbox that charges this budget.
    pub(crate) fn new(budget: Budget) -> Self {
        Self { budget, ..Self::default() }
    }

    /// Queues a frame of about this length for a share and charges the budget for the frame and its record; returns the start of
    /// the frame. Every byte of the queue passes here. Not called once the outbox is closed.
    pub(crate) fn put(
        &mut self,
        (class, length): (FrameClass, usize),
        share: Option<Share>,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<u64, PutError> {
        let before = self.len();
        match class {
            FrameClass::Request => self.shares.admits(share.as_ref(), length, before)?,
            FrameClass::Message | FrameClass::AtOnce => self.shares.admits_message(share.as_ref(), length, before)?,
        }
        let answers = match class {
            FrameClass::AtOnce => self.at_once + length + size_of::<Part>(),
            FrameClass::Request | FrameClass::Message => self.at_once,
        };
        if self.stuck.is_some() && answers > AT_ONCE_MAX.max(self.at_once) {
            return Err(PutError::AnswersUnread);
        }
        let len = self.queue.append(&self.budget, length, write)?;
        messages::UPSTREAM.sent();
        let start = self.end;
        self.shares.add(share.as_ref(), start, len, before);
        self.queue.parts.push(Part { start, len, is_out: false, share });
        self.end += len as u64;
        self.at_once = answers;
        Ok(start)
    }

    /// Queues the answer to a ping. While the writer is stuck only the newest few wait, and the others are dropped.
    pub(crate) fn put_pong(&mut self, frame: &Bytes) -> Result<(), PutError> {
        if self.stuck.is_none() {
            return self.put((FrameClass::AtOnce, frame.len()), None, |bytes| bytes.extend_from_slice(frame)).map(drop);
        }
        if self.pings.len() >= PINGS_MAX {
            self.pings.pop_front();
        }
        self.pings.push_back(frame.clone());
        Ok(())
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
        self.in_hand = 0;
        spare.settle(&mut self.shares);
        spare.forget();
        let left = self.stuck.take().map(|mut stuck| {
            stuck.compact();
            stuck
        });
        let batch = left.filter(|stuck| !stuck.is_written()).unwrap_or_else(|| {
            self.late.clear();
            self.half = None;
            while let Some(pong) = self.pings.pop_front() {
                // Without memory for the answer the ping has none.
                let _is_queued = self.put_pong(&pong);
            }
            self.at_once = 0;
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
        self.pings = VecDeque::new();
        self.at_once = 0;
        whole
    }
}

#[cfg(test)]
mod tests;
