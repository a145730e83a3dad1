//! How many of something each share holds.

use super::key::Share;
use crate::runtime::Keyed;
use std::collections::HashMap;

/// So many are found by a look at each of them; more have a table.
const FEW: usize = 8;

/// A count for each share that holds any. There are rarely more than a few, and to hash one costs more than to compare it with all of
/// those.
#[derive(Debug, Default)]
pub struct Tally {
    few: Vec<(Share, usize)>,
    /// Those that came while there were that many: each stays where it came.
    more: HashMap<Share, usize, Keyed>,
}

impl Tally {
    /// How many a share holds.
    pub fn of(&self, share: &Share) -> usize {
        match self.few.iter().find(|(known, _)| known == share) {
            Some((_, own)) => *own,
            None if self.more.is_empty() => 0,
            None => self.more.get(share).copied().unwrap_or_default(),
        }
    }

    /// How many the share holds that holds most.
    pub fn most(&self) -> usize {
        let few = self.few.iter().map(|(_, own)| *own);
        few.chain(self.more.values().copied()).max().unwrap_or_default()
    }

    /// It holds one more.
    pub fn add(&mut self, share: &Share) {
        self.add_many(share, 1);
    }

    /// It holds one more, where `may` of what it holds says so; whether that is so.
    pub fn add_where(&mut self, share: &Share, may: impl FnOnce(usize) -> bool) -> bool {
        let own = self.own(share);
        let may = may(own.as_deref().copied().unwrap_or_default());
        match own {
            Some(own) => *own += usize::from(may),
            None if may => self.enter(share, 1),
            None => {}
        }
        may
    }

    /// It holds so many more.
    pub fn add_many(&mut self, share: &Share, count: usize) {
        match self.own(share) {
            Some(own) => *own += count,
            None => self.enter(share, count),
        }
    }

    /// It holds one less; with none it is forgotten.
    pub fn remove(&mut self, share: &Share) {
        self.remove_many(share, 1);
    }

    /// It holds so many less; with none it is forgotten.
    pub fn remove_many(&mut self, share: &Share, count: usize) {
        if let Some(at) = self.few.iter().position(|(known, _)| known == share) {
            let own = &mut self.few[at].1;
            *own = own.saturating_sub(count);
            if *own == 0 {
                self.few.swap_remove(at);
            }
        } else if let Some(own) = self.more.get_mut(share) {
            *own = own.saturating_sub(count);
            if *own == 0 {
                self.more.remove(share);
            }
        }
    }

    /// Nobody holds any from now on.
    pub fn clear(&mut self) {
        self.few.clear();
        self.more.clear();
    }

    /// Whether nobody holds any.
    pub fn is_empty(&self) -> bool {
        self.few.is_empty() && self.more.is_empty()
    }

    fn own(&mut self, share: &Share) -> Option<&mut usize> {
        match self.few.iter_mut().find(|(known, _)| known == share) {
            Some((_, own)) => Some(own),
            None if self.more.is_empty() => None,
            None => self.more.get_mut(share),
        }
    }

    /// One that holds none yet holds so many.
    fn enter(&mut self, share: &Share, count: usize) {
        match self.few.len() < FEW {
            true => self.few.push((share.clone(), count)),
            false => _ = self.more.insert(share.clone(), count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::Principal;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_counts_as_a_plain_table_does_however_many_there_are(steps in proptest::collection::vec((0..20_usize, 0..4_usize), 0..200)) {
            let shares: Vec<_> = (0..20).map(|at| Share::Principal(Principal::named(&at.to_string()))).collect();
            let (mut tally, mut plain) = (Tally::default(), [0_usize; 20]);
            for (who, step) in steps {
                match step {
                    0 => {
                        tally.remove(&shares[who]);
                        plain[who] = plain[who].saturating_sub(1);
                    }
                    1 => {
                        tally.add_many(&shares[who], 2);
                        plain[who] += 2;
                    }
                    _ => {
                        let is_added = tally.add_where(&shares[who], |own| own < 3);
                        prop_assert_eq!(is_added, plain[who] < 3);
                        plain[who] += usize::from(is_added);
                    }
                }
                prop_assert_eq!(tally.of(&shares[who]), plain[who]);
                prop_assert_eq!(tally.most(), plain.iter().copied().max().unwrap());
                prop_assert_eq!(tally.is_empty(), plain == [0; 20]);
            }
        }
    }
}
