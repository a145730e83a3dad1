//! One value for each upstream, found by the upstream's id: members come and go, and a place in a list would be another one's then.

use std::ops::{Index, IndexMut};

/// Which upstream. An id is never given to another one; the order of two ids settles ties and says nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct MemberId(u32);

/// One value for each upstream, in configuration order.
#[derive(Debug, Clone)]
pub(crate) struct ByMember<T>(Vec<(MemberId, T)>);

impl<T> ByMember<T> {
    /// Gives each of these an id.
    pub(crate) fn numbered(values: impl IntoIterator<Item = T>) -> Self {
        Self((0..).map(MemberId).zip(values).collect())
    }

    /// Another value for each.
    pub(crate) fn map<U>(&self, mut make: impl FnMut(&T) -> U) -> ByMember<U> {
        ByMember(self.0.iter().map(|(id, value)| (*id, make(value))).collect())
    }

    /// That of one upstream; `None` where that is not among these.
    pub(crate) fn get(&self, id: MemberId) -> Option<&T> {
        self.place(id).map(|at| &self.0[at].1)
    }

    /// That of one upstream, to be changed.
    pub(crate) fn get_mut(&mut self, id: MemberId) -> Option<&mut T> {
        self.place(id).map(|at| &mut self.0[at].1)
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (MemberId, &T)> {
        self.0.iter().map(|(id, value)| (*id, value))
    }

    /// All of them, whosever they are.
    pub(crate) fn values(&self) -> impl Iterator<Item = &T> + Clone {
        self.0.iter().map(|(_, value)| value)
    }

    /// The ids of all.
    pub(crate) fn ids(&self) -> impl Iterator<Item = MemberId> {
        self.0.iter().map(|(id, _)| *id)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Where one stands. As long as none has gone its id is its place; the id decides.
    fn place(&self, id: MemberId) -> Option<usize> {
        let guess = id.0 as usize;
        match self.0.get(guess) {
            Some((found, _)) if *found == id => Some(guess),
            _ => self.0.iter().position(|(found, _)| *found == id),
        }
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
        all.0.remove(0);
        assert_eq!((all.get(ids[0]), all[ids[1]], all[ids[2]], all.len()), (None, "b", "c", 2));
        all[ids[2]] = "d";
        assert_eq!(all.map(|value| value.len()).iter().collect::<Vec<_>>(), [(ids[1], &1), (ids[2], &1)]);
        assert_eq!(all.values().copied().collect::<Vec<_>>(), ["b", "d"]);
    }
}
