//! Puts a large message together from its pieces, within the budget: nothing doubles, and all of it goes back to the system at once.

use super::account::{Hold, Kind};
use super::budget::{Budget, Charge, Spent};
use super::composed::{Mapped, charged};
use super::mapping::{MAPPED, Mapping};
use bytes::{Bytes, BytesMut};
use std::task::{Context, Poll};

/// A message that comes in pieces.
#[derive(Debug)]
pub struct Gather {
    budget: Budget,
    kind: Kind,
    /// How much there may be.
    max: usize,
    charge: Charge,
    small: BytesMut,
    /// A mapping, and how much of it is written.
    large: Option<(Mapping, usize)>,
}

impl Gather {
    /// For messages of at most `max` bytes; what passes that is refused as if there were no memory.
    pub fn new(budget: &Budget, kind: Kind, max: usize) -> Self {
        Self { budget: budget.clone(), kind, max, charge: Charge::default(), small: BytesMut::new(), large: None }
    }

    /// How much was gathered.
    pub fn len(&self) -> usize {
        self.large.as_ref().map_or(self.small.len(), |(_, len)| *len)
    }

    /// Whether nothing was.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes a piece. On an error all that was gathered is given up.
    pub fn push(&mut self, piece: &[u8]) -> Result<(), Spent> {
        let pushed = self.try_push(piece);
        if pushed.is_err() {
            self.clear();
        }
        pushed
    }

    fn try_push(&mut self, piece: &[u8]) -> Result<(), Spent> {
        let len = self.len() + piece.len();
        if len > self.max {
            return Err(Spent::LOST);
        }
        if self.large.is_none() && len <= MAPPED {
            if len > self.small.capacity() {
                let room = len.next_power_of_two();
                self.charge.grow(&self.budget, self.kind, room)?;
                self.small.reserve(room - self.small.len());
            }
            self.small.extend_from_slice(piece);
            return Ok(());
        }
        self.charge.grow(&self.budget, self.kind, len)?;
        if self.large.is_none() {
            let mut map = Mapping::new(self.max).ok_or(Spent::LOST)?;
            map.prefix_mut(self.small.len()).copy_from_slice(&self.small);
            self.large = Some((map, self.small.len()));
            self.small = BytesMut::new();
        }
        if let Some((map, at)) = &mut self.large {
            map.prefix_mut(len)[*at..].copy_from_slice(piece);
            *at = len;
        }
        Ok(())
    }

    /// Ready once all that was gathered is to be given up, which it then is.
    pub fn poll_lost(&mut self, cx: &Context<'_>) -> Poll<()> {
        let lost = self.charge.poll_lost(cx);
        if lost.is_ready() {
            self.clear();
        }
        lost
    }

    /// Resolves once all that was gathered is to be given up, which it then is.
    pub async fn lost(&mut self) {
        std::future::poll_fn(|cx| self.poll_lost(cx)).await;
    }

    /// Gives up what was gathered.
    pub fn clear(&mut self) {
        // The bytes go first: others may have the room as soon as it is not counted any more.
        (self.small, self.large) = Default::default();
        self.charge = Charge::default();
    }

    /// What was gathered: counted for as long as any part of it is kept.
    pub fn take(&mut self) -> Bytes {
        self.take_held().0
    }

    /// As [`Self::take`], with what can take it away.
    pub fn take_held(&mut self) -> (Bytes, Option<Hold>) {
        let charge = std::mem::take(&mut self.charge);
        charge.keep();
        let hold = charge.hold();
        let bytes = match self.large.take() {
            Some((map, len)) => Bytes::from_owner(Mapped::new(map, len, charge)),
            None => charged(std::mem::take(&mut self.small).freeze(), charge),
        };
        (bytes, hold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn what_was_gathered_is_whole_and_counted_until_its_last_part_is_gone() {
        let budget = Budget::new(64 * MIB);
        let mut gather = Gather::new(&budget, Kind::Line, 8 * MIB);
        let piece: Vec<u8> = (0..=255).cycle().take(40_000).collect();
        let mut expected = Vec::new();
        for _ in 0..100 {
            gather.push(&piece).unwrap();
            expected.extend_from_slice(&piece);
        }
        let whole = gather.take();
        assert!(whole == expected && gather.is_empty());
        assert!((expected.len()..expected.len() + 70_000).contains(&budget.used()));
        let part = whole.slice(5..9);
        drop(whole);
        assert!(budget.used() > 0);
        drop(part);
        assert_eq!(budget.used(), 0);
        gather.push(b"next").unwrap();
        assert_eq!((&gather.take()[..], budget.used()), (&b"next"[..], 0));
    }

    #[test]
    fn what_does_not_fit_is_given_up_whole() {
        let budget = Budget::new(4 * MIB);
        let mut gather = Gather::new(&budget, Kind::Body, 64 * MIB);
        let piece = vec![b'x'; MIB];
        let taken = (0..64).take_while(|_| gather.push(&piece).is_ok()).count();
        assert_eq!((taken, gather.len(), budget.used()), (3, 0, 0));
        let mut bounded = Gather::new(&budget, Kind::Body, 100);
        assert_eq!((bounded.push(&[b'x'; 101]), bounded.push(&[b'x'; 100])), (Err(Spent::LOST), Ok(())));
    }
}
