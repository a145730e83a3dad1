//! A message that is written in one go: a large one into a mapping of its own, which goes back to the system with it.

use super::budget::Charge;
use super::mapping::{MAPPED, Mapping};
use crate::runtime::aside;
use bytes::{BufMut, Bytes};

/// Up to here a message is written on the stack first: memory of just its length is asked for then, and becomes `Bytes` without a second
/// allocation.
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
    /// Whether a message of at most so many bytes has a mapping of its own.
    pub fn is_large(most: usize) -> bool {
        most > MAPPED
    }

    /// A message of at most `most` bytes; `write` takes what it writes off the front of the room that it is given.
    pub fn of(most: usize, write: impl FnOnce(&mut &mut [u8])) -> Self {
        if most <= STACKED {
            return Self::Heap(stacked(most, write, <[u8]>::to_vec));
        }
        match Self::is_large(most).then(|| Mapping::new(most)).flatten() {
            Some(mut map) => {
                let len = aside(most, || written(&mut map.room_mut()[..most], write));
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

    /// The same for several who keep it, and counted as long as one of them does.
    pub fn shared(most: usize, charge: Charge, write: impl FnOnce(&mut &mut [u8])) -> Bytes {
        if most > STACKED || !charge.is_empty() {
            return charged(Self::of(most, write), charge);
        }
        stacked(most, write, |bytes| joined(&[bytes]))
    }
}

/// What `take` makes of a short message that was written on the stack, where less room is made ready the less it may need.
fn stacked<T>(most: usize, write: impl FnOnce(&mut &mut [u8]), take: impl FnOnce(&[u8]) -> T) -> T {
    fn within<const ROOM: usize, T>(write: impl FnOnce(&mut &mut [u8]), take: impl FnOnce(&[u8]) -> T) -> T {
        let mut room = [0; ROOM];
        let len = written(&mut room, write);
        take(&room[..len])
    }
    match most {
        ..=512 => within::<512, T>(write, take),
        _ => within::<STACKED, T>(write, take),
    }
}

/// How much of the room was written to.
fn written(room: &mut [u8], write: impl FnOnce(&mut &mut [u8])) -> usize {
    let mut rest = &mut *room;
    write(&mut rest);
    let rest = rest.len();
    room.len() - rest
}

/// The parts one behind the other. Where they are short they lie in one piece of memory with the count of who keeps them: a clone of
/// them, or of a part, asks for none.
pub fn joined(parts: &[&[u8]]) -> Bytes {
    match parts.iter().map(|part| part.len()).sum() {
        0..=256 => Short::<256>::joined(parts),
        257..=512 => Short::<512>::joined(parts),
        513..=1024 => Short::<1024>::joined(parts),
        most => Composed::of(most, |out| parts.iter().for_each(|part| out.put_slice(part))).into(),
    }
}

/// Bytes that have room beside their count.
struct Short<const ROOM: usize> {
    len: usize,
    room: [u8; ROOM],
}

impl<const ROOM: usize> Short<ROOM> {
    fn joined(parts: &[&[u8]]) -> Bytes {
        let mut room = [0; ROOM];
        let len = written(&mut room, |out| parts.iter().for_each(|part| out.put_slice(part)));
        Bytes::from_owner(Self { len, room })
    }
}

impl<const ROOM: usize> AsRef<[u8]> for Short<ROOM> {
    fn as_ref(&self) -> &[u8] {
        &self.room[..self.len]
    }
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
            Self::Mapped(mapped) => mapped.map.prefix_mut(mapped.len),
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
    map: Mapping,
    len: usize,
    _charge: Charge,
}

impl Mapped {
    pub(super) fn new(mut map: Mapping, len: usize, charge: Charge) -> Self {
        let _written = map.prefix_mut(len);
        Self { map, len, _charge: charge }
    }
}

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        self.map.prefix(self.len)
    }
}

/// Bytes that are counted for as long as any part of them is kept.
pub fn charged(bytes: impl AsRef<[u8]> + Into<Bytes> + Send + 'static, charge: Charge) -> Bytes {
    if charge.is_empty() { bytes.into() } else { Bytes::from_owner(Charged { bytes, _charge: charge }) }
}

struct Charged<T> {
    bytes: T,
    _charge: Charge,
}

impl<T: AsRef<[u8]>> AsRef<[u8]> for Charged<T> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::account::Kind;
    use crate::memory::budget::Budget;

    /// Bytes that were written with room for more.
    fn of(most: usize, bytes: &[u8]) -> Composed {
        Composed::of(most, |out| out.put_slice(bytes))
    }

    #[test]
    fn what_is_small_takes_memory_of_just_its_length() {
        let Composed::Heap(bytes) = of(STACKED, &[b'x'; 100]) else { panic!("it is not large") };
        assert_eq!((bytes.len(), bytes.capacity()), (100, 100));
    }

    #[test]
    fn a_message_of_any_length_reads_as_it_was_written() {
        for len in [0, 1, 256, 257, 512, 1024, 1025, STACKED, STACKED + 1, MAPPED, MAPPED + 1] {
            let text: Vec<u8> = (0..len).map(|at| at as u8).collect();
            assert_eq!(matches!(of(len, &text), Composed::Mapped(_)), len > MAPPED, "{len}");
            for most in [len, len + 1, len + 4096] {
                assert!(of(most, &text).as_ref() == text, "{len} of {most}");
                let shared = Composed::shared(most, Charge::default(), |out| out.put_slice(&text));
                assert!(shared == text && shared.slice(len / 2..) == text[len / 2..], "{len} of {most}");
            }
            assert!(joined(&[&text[..len / 3], b"", &text[len / 3..]]) == text, "{len}");
        }
    }

    #[test]
    fn a_shared_message_is_counted_until_its_last_part_is_gone() {
        let budget = Budget::new(1 << 20);
        let charge = budget.charge(Kind::Queue, 100_000).unwrap();
        let part = Composed::shared(10, charge, |out| out.put_slice(b"0123456789")).slice(3..4);
        assert!(&part[..] == b"3" && budget.used() >= 100_000, "{}", budget.used());
        drop(part);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn what_is_large_can_be_changed_where_it_lies() {
        let text = vec![b'x'; MAPPED];
        let mut composed = Composed::of(MAPPED + 4096, |out| {
            out.put_u8(b'{');
            out.put_slice(&text);
            out.put_u8(b'\n');
        });
        assert!(matches!(composed, Composed::Mapped(_)) && composed.as_ref().len() == MAPPED + 2);
        assert_eq!(size_of::<Composed>(), size_of::<Vec<u8>>());
        composed.as_mut()[MAPPED + 1] = b' ';
        let bytes = Bytes::from(composed);
        assert!(bytes[1..=MAPPED] == text[..] && bytes[0] == b'{' && bytes[MAPPED + 1] == b' ');
    }
}
