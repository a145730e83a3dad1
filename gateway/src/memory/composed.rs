//! A message that is written in one go: a large one into a mapping of its own, which goes back to the system with it.

use super::budget::Charge;
use bytes::{BufMut, Bytes};
use memmap2::{MmapMut, MmapOptions};

/// From here on a message has a mapping of its own: only the pages that were written to are there, it grows without a copy, and
/// it is gone as soon as it is dropped. The allocator keeps what a worker freed for as long as that worker has nothing to do: after a
/// stream of events of 900 KiB each that was 70 MiB.
pub(crate) const MAPPED: usize = 128 * 1024;

/// Up to here a message whose length is not known before is written on the stack first: memory of just its length is asked for then, and
/// becomes `Bytes` without a second allocation.
const STACKED: usize = 2048;

/// A message that was written in one go.
#[derive(Debug)]
pub enum Composed {
    /// One that is not large.
    Heap(Vec<u8>),
    /// One that has a mapping of its own. Boxed, so that the others are as small as what they hold.
    Mapped(Box<Mapped>),
}

impl Composed {
    /// Whether a message of at most so many bytes is to be written by [`Self::large`].
    pub fn is_large(most: usize) -> bool {
        most > MAPPED
    }

    /// Whether a message of at most so many bytes is to be written by [`Self::small`].
    pub fn is_small(most: usize) -> bool {
        most <= STACKED
    }

    /// A message of at most `most` bytes; `write` takes what it writes off the front of the room that it is given.
    pub fn large(most: usize, write: impl FnOnce(&mut &mut [u8])) -> Self {
        match Mapped::room(most) {
            Some(mut map) => {
                let len = written(&mut map, write);
                Self::Mapped(Box::new(Mapped::new(map, len, Charge::default())))
            }
            None => {
                let mut bytes = vec![0; most];
                let len = written(&mut bytes, write);
                bytes.truncate(len);
                Self::Heap(bytes)
            }
        }
    }

    /// A message that is small; `write` takes what it writes off the front of the room that it is given.
    pub fn small(write: impl FnOnce(&mut &mut [u8])) -> Self {
        let mut room = [0; STACKED];
        let len = written(&mut room, write);
        Self::Heap(room[..len].to_vec())
    }
}

/// How much of the room was written to.
fn written(room: &mut [u8], write: impl FnOnce(&mut &mut [u8])) -> usize {
    let mut rest = &mut *room;
    write(&mut rest);
    let rest = rest.len();
    room.len() - rest
}

/// The parts one behind the other.
pub fn joined(parts: &[&[u8]]) -> Bytes {
    let most = parts.iter().map(|part| part.len()).sum();
    if Composed::is_large(most) {
        return Composed::large(most, |out| parts.iter().for_each(|part| out.put_slice(part))).into();
    }
    parts.concat().into()
}

impl AsRef<[u8]> for Composed {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Heap(bytes) => bytes,
            Self::Mapped(mapped) => (**mapped).as_ref(),
        }
    }
}

impl AsMut<[u8]> for Composed {
    fn as_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Heap(bytes) => bytes,
            Self::Mapped(mapped) => &mut mapped.map[..mapped.len],
        }
    }
}

impl From<Vec<u8>> for Composed {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Heap(bytes)
    }
}

impl From<Bytes> for Composed {
    fn from(bytes: Bytes) -> Self {
        Self::Heap(bytes.into())
    }
}

impl From<Composed> for Bytes {
    fn from(composed: Composed) -> Self {
        match composed {
            Composed::Heap(bytes) => bytes.into(),
            Composed::Mapped(mapped) => Self::from_owner(*mapped),
        }
    }
}

/// The beginning of a mapping, counted for as long as it is kept.
#[derive(Debug)]
pub struct Mapped {
    map: MmapMut,
    len: usize,
    _charge: Charge,
}

impl Mapped {
    /// A mapping with room for so many bytes, of which only the pages that are written to take memory.
    pub(crate) fn room(most: usize) -> Option<MmapMut> {
        MmapOptions::new().len(most).no_reserve_swap().map_anon().ok()
    }

    pub(crate) fn new(map: MmapMut, len: usize, charge: Charge) -> Self {
        Self { map, len, _charge: charge }
    }
}

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        &self.map[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_small_takes_memory_of_just_its_length() {
        assert!(Composed::is_small(STACKED) && !Composed::is_small(STACKED + 1));
        let Composed::Heap(bytes) = Composed::small(|out| out.put_slice(&[b'x'; 100])) else {
            panic!("it is not large")
        };
        assert_eq!((bytes.len(), bytes.capacity()), (100, 100));
    }

    #[test]
    fn what_is_large_is_mapped_and_reads_as_it_was_written() {
        let text = vec![b'x'; MAPPED];
        let mut composed = Composed::large(MAPPED + 4096, |out| {
            out.put_u8(b'{');
            out.put_slice(&text);
            out.put_u8(b'\n');
        });
        assert!(matches!(composed, Composed::Mapped(_)) && composed.as_ref().len() == MAPPED + 2);
        assert_eq!(size_of::<Composed>(), size_of::<Vec<u8>>());
        composed.as_mut()[MAPPED + 1] = b' ';
        let bytes = Bytes::from(composed);
        assert!(joined(&[b"{", &text, b" "]) == bytes);
        assert!(bytes[1..=MAPPED] == text[..] && bytes[0] == b'{' && bytes[MAPPED + 1] == b' ');
    }
}
