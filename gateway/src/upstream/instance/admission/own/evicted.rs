//! The handshake sessions of clients whose own ones with an upstream made room for others: they are told so with their next result.

use std::collections::{HashMap, VecDeque};

/// So many are known, those that made room last.
const KNOWN_MAX: usize = 16_384;

/// The clients whose sessions made room, and that have none since.
#[derive(Default)]
pub(super) struct Evicted {
    /// By the number of the session, with which eviction of all that was.
    known: HashMap<u64, u64>,
    /// In the order in which they made room; some may be known no more.
    order: VecDeque<(u64, u64)>,
    count: u64,
}

impl Evicted {
    /// The one of the client session with this number made room.
    pub(super) fn note(&mut self, number: u64) {
        self.count += 1;
        self.known.insert(number, self.count);
        self.order.push_back((number, self.count));
        if self.order.len() > KNOWN_MAX
            && let Some((oldest, at)) = self.order.pop_front()
            && self.known.get(&oldest) == Some(&at)
        {
            self.known.remove(&oldest);
        }
    }

    /// Whether the last session of a client made room; from now on it has another.
    pub(super) fn take(&mut self, number: u64) -> bool {
        self.known.remove(&number).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_told_once_and_only_so_many_are_known() {
        let mut evicted = Evicted::default();
        let most = KNOWN_MAX as u64;
        (0..=most).for_each(|number| evicted.note(number));
        assert!(!evicted.take(0), "it was the oldest of too many");
        assert!(evicted.take(most) && !evicted.take(most));
        // One that makes room again and again takes no more places than others.
        for _ in 0..2 * most {
            evicted.note(7);
            assert!(evicted.take(7));
        }
        assert!(evicted.order.len() <= KNOWN_MAX && evicted.known.len() <= KNOWN_MAX);
    }
}
