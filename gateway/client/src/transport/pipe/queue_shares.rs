//! How much of the send queue of a pipe each client may fill.

use crate::call::share::{Share, Tally, may_have};

/// How many bytes may wait to be written. One client alone gets half of them, and there is always room for a message of another.
pub(crate) const OUT_MAX: usize = 8 * 1024 * 1024;
/// By how much answers and notifications, which are not refused for the requests before them, may pass that.
const OUT_SLACK: usize = 64 * 1024;
/// What one frame that is larger than any part counts for.
const PART_MAX: usize = OUT_MAX / 2;

/// How much waits for each client.
#[derive(Debug, Default)]
pub(crate) struct QueueShares {
    by: Tally,
    /// The frame that is larger than any part, and by how much.
    oversize: Option<(u64, usize)>,
}

/// A request has no room in the queue; the figures are in KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "its send queue has no room for {length} KiB more: of {all} KiB that wait, {own} KiB are this client's own requests"
)]
pub(crate) struct QueueFull {
    length: usize,
    all: usize,
    own: usize,
}

impl QueueShares {
    /// Whether a request of this length may wait too, where so much waits in all. A request of the gateway itself may while
    /// there is any room; a client's may where it leaves as much as the client then has, or where nothing else waits.
    pub(crate) fn admits(&self, share: Option<&Share>, length: usize, all: usize) -> Result<(), QueueFull> {
        let free = OUT_MAX.saturating_sub(self.counted(all));
        let own = share.map_or(0, |share| self.by.of(share));
        let fits = match share {
            None => free > 0,
            Some(_) => all == 0 || free.checked_sub(length).is_some_and(|left| may_have(own + length, left)),
        };
        if fits { Ok(()) } else { Err(QueueFull::of(length, all, own)) }
    }

    /// Whether an answer or a notification of this length may wait too. What is large has the part of a request.
    pub(crate) fn admits_message(&self, share: Option<&Share>, length: usize, all: usize) -> Result<(), QueueFull> {
        if share.is_some() && length > OUT_SLACK {
            return self.admits(share, length, all);
        }
        let own = share.map_or(0, |share| self.by.of(share));
        if self.counted(all) <= OUT_MAX + OUT_SLACK { Ok(()) } else { Err(QueueFull::of(length, all, own)) }
    }

    /// A frame waits, behind so much.
    pub(crate) fn add(&mut self, share: Option<&Share>, start: u64, length: usize, before: usize) {
        share.into_iter().for_each(|share| self.by.add_many(share, length));
        if before == 0 && length > PART_MAX {
            self.oversize = Some((start, length - PART_MAX));
        }
    }

    /// A frame is written, or taken out.
    pub(crate) fn remove(&mut self, share: Option<&Share>, start: u64, length: usize) {
        share.into_iter().for_each(|share| self.by.remove_many(share, length));
        self.oversize.take_if(|(large, _)| *large == start);
    }

    /// So much of the first frame is still to be written.
    pub(crate) fn shrink(&mut self, start: u64, length: usize) {
        if let Some((_, excess)) = self.oversize.as_mut().filter(|(large, _)| *large == start) {
            *excess = length.saturating_sub(PART_MAX);
        }
    }

    /// Nothing waits any more.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// How much of what waits counts: of a frame that is larger than any part no more than a part, so that others have theirs.
    fn counted(&self, all: usize) -> usize {
        all.saturating_sub(self.oversize.map_or(0, |(_, excess)| excess))
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.by.is_empty() && self.oversize.is_none()
    }

    #[cfg(test)]
    pub(crate) fn of(&self, share: &Share) -> usize {
        self.by.of(share)
    }
}

impl QueueFull {
    fn of(length: usize, all: usize, own: usize) -> Self {
        let [length, all, own] = [length, all, own].map(|bytes| bytes.div_ceil(1024));
        Self { length, all, own }
    }
}
