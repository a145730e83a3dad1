//! Mappings for large messages, of which a few are reused: a new mapping costs a page fault for each page, 250 for 1 MB.

use memmap2::{MmapMut, MmapOptions};
use std::sync::{Mutex, PoisonError};

/// A longer message has its own mapping: only the pages that were written to take memory, and it grows without a copy. The allocator would
/// keep the memory that a worker freed for as long as that worker is idle: 70 MiB after a stream of events of 900 KiB each.
pub(crate) const MAPPED: usize = 128 * 1024;
/// Written bytes that all spare mappings hold at most, outside the budget.
const SPARE_MAX: usize = 16 * 1024 * 1024;
/// Written bytes that one spare mapping holds at most; the mapping of a larger message is freed at once.
const SPARE_EACH_MAX: usize = 2 * 1024 * 1024;

static SPARE: Mutex<Spare> = Mutex::new(Spare { mappings: Vec::new(), bytes: 0, unused: 0 });

/// Mappings that wait for the next large message.
#[derive(Debug)]
struct Spare {
    /// Those that were returned last stand last and are reused first.
    mappings: Vec<(MmapMut, usize)>,
    /// The sum of their written bytes.
    bytes: usize,
    /// The first so many have not been needed since [`free_unused`] was last called.
    unused: usize,
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
        let (map, written) = self.mappings.remove(at);
        self.bytes -= written;
        self.unused = self.unused.min(self.mappings.len());
        Some((map, written))
    }

    /// Keeps a mapping, or gives it back where it does not fit. Each counts as the smallest large message at least, which bounds
    /// their number.
    fn put(&mut self, map: MmapMut, written: usize) -> Option<MmapMut> {
        let written = written.max(MAPPED);
        if written > SPARE_EACH_MAX || self.bytes + written > SPARE_MAX {
            return Some(map);
        }
        self.bytes += written;
        self.mappings.push((map, written));
        None
    }

    fn remove_unused(&mut self) -> Vec<(MmapMut, usize)> {
        let unused: Vec<_> = self.mappings.drain(..self.unused).collect();
        self.bytes -= unused.iter().map(|(_, written)| written).sum::<usize>();
        self.unused = self.mappings.len();
        unused
    }
}

/// Frees the spare mappings that have not been needed since the last call.
pub(super) fn free_unused() {
    // They are freed after the lock is released.
    let _freed = lock().remove_unused();
}

fn lock() -> std::sync::MutexGuard<'static, Spare> {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spare() -> Spare {
        Spare { mappings: Vec::new(), bytes: 0, unused: 0 }
    }

    fn map(len: usize) -> MmapMut {
        MmapMut::map_anon(len).unwrap()
    }

    #[test]
    fn spare_mapping_is_reused_for_messages_it_has_room_for() {
        let mut spare = spare();
        assert!(spare.put(map(400_000), 300_000).is_none() && spare.put(map(200_000), 150_000).is_none());
        assert!(spare.take(500_000).is_none());
        assert_eq!(spare.take(100_000).map(|(map, written)| (map.len(), written)), Some((200_000, 150_000)));
        assert_eq!(spare.take(100_000).map(|(map, written)| (map.len(), written)), Some((400_000, 300_000)));
        assert_eq!((spare.bytes, spare.mappings.len()), (0, 0));
    }

    #[test]
    fn spare_mappings_are_bounded_in_bytes() {
        let mut spare = spare();
        assert!(spare.put(map(64 << 20), SPARE_EACH_MAX + 1).is_some());
        let kept = (0..1000).take_while(|_| spare.put(map(1 << 20), 1 << 20).is_none()).count();
        assert_eq!((kept, spare.bytes), (SPARE_MAX >> 20, SPARE_MAX));
        // However little was written, their number is bounded.
        let mut small = self::spare();
        assert_eq!((0..1000).take_while(|_| small.put(map(4096), 1).is_none()).count(), SPARE_MAX / MAPPED);
    }

    #[test]
    fn spare_mappings_are_freed_once_unused_for_one_round() {
        let mut spare = spare();
        (0..4).for_each(|_| assert!(spare.put(map(MAPPED), MAPPED).is_none()));
        assert!(spare.remove_unused().is_empty());
        let used = spare.take(MAPPED).unwrap();
        assert!(spare.put(used.0, used.1).is_none());
        assert_eq!((spare.remove_unused().len(), spare.mappings.len(), spare.bytes), (3, 1, MAPPED));
        assert_eq!((spare.remove_unused().len(), spare.mappings.len(), spare.bytes), (1, 0, 0));
    }
}
