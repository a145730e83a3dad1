//! One value for each upstream, found by the upstream's id: members come and go, and a place in a list would be another one's then.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::ops::{Index, IndexMut};

/// Which upstream. Its number is never given to another one; the order of two ids settles ties and says nothing else.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemberId {
    number: u32,
    /// Where it stood when this id was made: where it is looked for first.
    place: u32,
}

/// One value for each upstream, in configuration order.
#[derive(Debug, Clone)]
pub(crate) struct ByMember<T> {
    all: Vec<(MemberId, T)>,
    /// The number that the next new one is given.
    next: u32,
}

impl<T> ByMember<T> {
    /// Gives each of these an id.
    pub(crate) fn numbered(values: impl IntoIterator<Item = T>) -> Self {
        Self { all: Vec::new(), next: 0 }.followed_by(values.into_iter().map(|value| (None, value)))
    }

    /// What comes in the place of these: one that was among them keeps its number, and another one is given a new one.
    pub(crate) fn followed_by<U>(&self, values: impl IntoIterator<Item = (Option<MemberId>, U)>) -> ByMember<U> {
        let mut next = self.next;
        let placed = (0..).zip(values).map(|(place, (known, value))| {
            let number = known.map_or(next, |id| id.number);
            next += u32::from(known.is_none());
            (MemberId { number, place }, value)
        });
        let all = placed.collect();
        ByMember { all, next }
    }

    /// Another value for each.
    pub(crate) fn map<U>(&self, mut make: impl FnMut(&T) -> U) -> ByMember<U> {
        ByMember { all: self.all.iter().map(|(id, value)| (*id, make(value))).collect(), next: self.next }
    }

    /// That of one upstream; `None` where that is not among these.
    pub(crate) fn get(&self, id: MemberId) -> Option<&T> {
        self.place(id).map(|at| &self.all[at].1)
    }

    /// That of one upstream, to be changed.
    pub(crate) fn get_mut(&mut self, id: MemberId) -> Option<&mut T> {
        self.place(id).map(|at| &mut self.all[at].1)
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (MemberId, &T)> + Clone {
        self.all.iter().map(|(id, value)| (*id, value))
    }

    /// All of them, whosever they are.
    pub(crate) fn values(&self) -> impl Iterator<Item = &T> + Clone {
        self.all.iter().map(|(_, value)| value)
    }

    /// The ids of all.
    pub(crate) fn ids(&self) -> impl Iterator<Item = MemberId> {
        self.all.iter().map(|(id, _)| *id)
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Where one stands: mostly where it stood when its id was made.
    fn place(&self, id: MemberId) -> Option<usize> {
        let guess = id.place as usize;
        match self.all.get(guess) {
            Some((found, _)) if *found == id => Some(guess),
            _ => self.all.iter().position(|(found, _)| *found == id),
        }
    }
}

impl PartialEq for MemberId {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for MemberId {}

impl PartialOrd for MemberId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for MemberId {
    fn cmp(&self, other: &Self) -> Ordering {
        self.number.cmp(&other.number)
    }
}

impl Hash for MemberId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

/// For an id of the very same catalog.
impl<T> Index<MemberId> for ByMember<T> {
    type Output = T;

    fn index(&self, id: MemberId) -> &T {
        self.get(id).expect("a catalog's own ids are in it")
    }
}

/// For an id of the very same catalog.
impl<T> IndexMut<MemberId> for ByMember<T> {
    fn index_mut(&mut self, id: MemberId) -> &mut T {
        self.get_mut(id).expect("a catalog's own ids are in it")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_by_its_id_also_when_those_before_it_have_gone() {
        let mut all = ByMember::numbered(["a", "b", "c"]);
        let ids: Vec<_> = all.ids().collect();
        assert_eq!(ids.iter().map(|id| all[*id]).collect::<Vec<_>>(), ["a", "b", "c"]);
        all.all.remove(0);
        assert_eq!((all.get(ids[0]), all[ids[1]], all[ids[2]], all.len()), (None, "b", "c", 2));
        all[ids[2]] = "d";
        assert_eq!(all.map(|value| value.len()).iter().collect::<Vec<_>>(), [(ids[1], &1), (ids[2], &1)]);
        assert_eq!(all.values().copied().collect::<Vec<_>>(), ["b", "d"]);
    }

    #[test]
    fn whoever_stays_keeps_its_number_and_that_of_one_that_went_is_not_given_again() {
        let first = ByMember::numbered(["a", "b"]);
        let [a, b] = [0, 1].map(|at| first.all[at].0);
        let second = first.followed_by([(None, "c"), (Some(b), "b")]);
        assert_eq!((second.get(a), second[b], second.all[1].0.place), (None, "b", 1));
        let c = second.all[0].0;
        assert!(c > b);
        let third = second.followed_by([(None, "d")]);
        assert_eq!((third.get(a), third.get(b), third.get(c), third.len()), (None, None, None, 1));
    }
}
