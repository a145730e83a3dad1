//! Mappings for large messages, of which a few are reused: a new mapping costs a page fault for each page, 250 for 1 MB.

use super::composed::MAPPED;
use memmap2::{MmapMut, MmapOptions};
use std::sync::{Mutex, PoisonError};

/// Written bytes that all spare mappings hold at most, outside the budget.
const SPARE_MAX: usize = 8 * 1024 * 1024;
/// Written bytes that one spare mapping holds at most; the mapping of a larger message is freed at once.
const SPARE_EACH_MAX: usize = 2 * 1024 * 1024;

static SPARE: Mutex<Spare> = Mutex::new(Spare { mappings: Vec::new(), bytes: 0 });

/// Mappings that wait for the next large message.
#[derive(Debug)]
struct Spare {
    mappings: Vec<(MmapMut, usize)>,
    /// The sum of their written bytes.
    bytes: usize,
}

/// An anonymous mapping. Only its written pages take memory. A reused one holds bytes of an earlier message behind those that its owner
/// has written.
#[derive(Debug)]
pub(super) struct Mapping {
    /// `None` only while it is dropped.
    map: Option<MmapMut>,
    /// The end of the bytes that were ever written.
    written: usize,
}

impl Mapping {
    /// A mapping of at least `len` bytes: a spare one, or a new one.
    pub(super) fn new(len: usize) -> Option<Self> {
        let spare = lock().take(len);
        let (map, written) = match spare {
            Some(spare) => spare,
            None => (MmapOptions::new().len(len).no_reserve_swap().map_anon().ok()?, 0),
        };
        Some(Self { map: Some(map), written })
    }

    /// The first `len` bytes, which the owner has written or writes now.
    pub(super) fn prefix_mut(&mut self, len: usize) -> &mut [u8] {
        self.written = self.written.max(len);
        &mut self.room_mut()[..len]
    }

    /// All of it. The owner reports what it writes by [`Self::prefix_mut`].
    pub(super) fn room_mut(&mut self) -> &mut [u8] {
        self.map.as_deref_mut().unwrap_or_default()
    }

    /// The first `len` bytes.
    pub(super) fn prefix(&self, len: usize) -> &[u8] {
        self.map.as_deref().and_then(|map| map.get(..len)).unwrap_or_default()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // One that does not fit is freed after the lock is released.
        let _freed = self.map.take().and_then(|map| lock().put(map, self.written));
    }
}

impl Spare {
    /// The mapping that was returned last and has `len` bytes.
    fn take(&mut self, len: usize) -> Option<(MmapMut, usize)> {
        let at = self.mappings.iter().rposition(|(map, _)| map.len() >= len)?;
        let (map, written) = self.mappings.swap_remove(at);
        self.bytes -= written;
        Some((map, written))
    }

    /// Keeps a mapping, or gives it back where it does not fit. Each counts as the smallest large message at least, which bounds their number.
    fn put(&mut self, map: MmapMut, written: usize) -> Option<MmapMut> {
        let written = written.max(MAPPED);
        if written > SPARE_EACH_MAX || self.bytes + written > SPARE_MAX {
            return Some(map);
        }
        self.bytes += written;
        self.mappings.push((map, written));
        None
    }
}

/// Frees the spare mappings.
pub(super) fn free_spare() {
    let freed = std::mem::replace(&mut *lock(), Spare { mappings: Vec::new(), bytes: 0 });
    drop(freed);
}

fn lock() -> std::sync::MutexGuard<'static, Spare> {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}
