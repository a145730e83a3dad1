//! What is too small to be counted by itself: summed up by client with an atomic add, and counted in steps once a sum is large.

use super::account::{Account, Whose};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A sum is counted in steps of this; the first one is free.
const STEP: usize = 64 * 1024;
/// So many sums there are. Two clients may share one: then they are weighed together in what is small.
const CELLS: usize = 1024;

/// The sums of all clients.
#[derive(Debug)]
pub(super) struct Cells(Box<[Cell]>);

/// The sum of one client.
#[derive(Debug)]
pub(super) struct Cell {
    bytes: AtomicUsize,
    /// So large it may be without a look at its account.
    room: AtomicUsize,
    account: Mutex<Option<Arc<Account>>>,
}

impl Default for Cells {
    fn default() -> Self {
        let cell = || Cell { bytes: AtomicUsize::new(0), room: AtomicUsize::new(STEP), account: Mutex::default() };
        Self((0..CELLS).map(|_| cell()).collect())
    }
}

impl Cells {
    /// Whose sum is where: a client's; where there is none, an upstream's.
    pub(super) fn place(whose: &Whose) -> usize {
        match (&whose.owner, &whose.upstream) {
            (Some(owner), _) => owner.key() as usize % CELLS,
            // All that is kept on behalf of an upstream shares its name.
            (None, Some(upstream)) => (upstream.as_ptr() as usize / 16) % CELLS,
            (None, None) => 0,
        }
    }

    pub(super) fn at(&self, place: usize) -> &Cell {
        &self.0[place % CELLS]
    }
}

impl Cell {
    /// Adds so many bytes. Where the sum passes what was counted, `grow` counts all of it.
    pub(super) fn add<E>(
        &self,
        bytes: usize,
        grow: impl FnOnce(&mut Option<Arc<Account>>, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        let now = self.bytes.fetch_add(bytes, Ordering::AcqRel) + bytes;
        if now <= self.room.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut account = self.account.lock().unwrap_or_else(PoisonError::into_inner);
        let to = self.bytes.load(Ordering::Acquire).div_ceil(STEP) * STEP;
        if to <= self.room.load(Ordering::Acquire) {
            return Ok(());
        }
        let grown = grow(&mut account, to);
        match &grown {
            Ok(()) => self.room.store(to, Ordering::Release),
            Err(_) => _ = self.bytes.fetch_sub(bytes, Ordering::AcqRel),
        }
        grown
    }

    /// Adds what is there anyway; whoever adds next counts it.
    pub(super) fn note(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::AcqRel);
    }

    /// Takes so many bytes away. Where much less is left than was counted, `shrink` counts what is left; nothing, where that is little.
    pub(super) fn take(&self, bytes: usize, shrink: impl FnOnce(&mut Option<Arc<Account>>, usize)) {
        let left = self.bytes.fetch_sub(bytes, Ordering::AcqRel) - bytes;
        let room = self.room.load(Ordering::Acquire);
        if room == STEP || left + 2 * STEP > room {
            return;
        }
        let mut account = self.account.lock().unwrap_or_else(PoisonError::into_inner);
        let to = (self.bytes.load(Ordering::Acquire).div_ceil(STEP) * STEP).max(STEP);
        if to < self.room.load(Ordering::Acquire) {
            shrink(&mut account, if to == STEP { 0 } else { to });
            self.room.store(to, Ordering::Release);
        }
    }
}
