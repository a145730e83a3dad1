//! What is known of an object: where the members stand that the gateway acts on, and what is odd about them.

use super::key::Key;
use crate::value::spelling::Found;
use smallvec::SmallVec;

/// So many members are known without memory of their own.
const FEW: usize = 4;

/// Where a member stands: its key's quote, its value, its end. All zero = absent (an object's first byte is `{`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) start: u32,
    pub(super) value: u32,
    pub(super) end: u32,
}

/// The places of members, as a walk has met them.
pub(super) type Places = SmallVec<[(Key, Place); FEW]>;

/// What was found on the walk. It is small: an object is handed on far more often than looked into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Known {
    /// Where a few members stand in a short object: nearly every object is one.
    Few([Near; FEW]),
    /// All else.
    More(Box<More>),
}

/// Where a member stands in a short object, where there is one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Near {
    key: Option<Key>,
    /// From its start to its value.
    gap: u8,
    start: u16,
    end: u16,
}

/// What there is beyond a few places near the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct More {
    places: Places,
    /// What not every program reads alike.
    pub(super) found: Found,
}

/// Where a member stands; a place is made for one that was not met before.
pub(super) fn place_in(places: &mut Places, key: Key) -> &mut Place {
    let at = places.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
        places.push((key, Place::default()));
        places.len() - 1
    });
    &mut places[at].1
}

impl Default for Known {
    fn default() -> Self {
        Self::Few([Near::default(); FEW])
    }
}

impl Known {
    /// What a walk has found.
    pub(super) fn of(places: Places, found: Found) -> Self {
        if found.is_nothing() && places.len() <= FEW {
            let mut few = [Near::default(); FEW];
            let fits = places.iter().zip(&mut few).all(|((key, place), near)| near.note(*key, *place));
            if fits {
                return Self::Few(few);
            }
        }
        Self::More(Box::new(More { places, found }))
    }

    /// Where a member stands, where there is one.
    pub(super) fn place(&self, key: Key) -> Option<Place> {
        match self {
            Self::Few(few) => few.iter().find(|near| near.key == Some(key)).map(|near| near.place()),
            Self::More(more) => more.places.iter().find(|(known, _)| *known == key).map(|(_, place)| *place),
        }
        .filter(|place| place.end != 0)
    }

    /// What there is beyond a few places.
    pub(super) fn more(&self) -> Option<&More> {
        if let Self::More(more) = self { Some(more) } else { None }
    }

    /// The same once members stand elsewhere.
    pub(super) fn moved(mut self, change: impl Fn(Place) -> Place) -> Self {
        match &mut self {
            Self::Few(few) => {
                let places = few.iter().filter_map(|near| Some((near.key?, change(near.place()))));
                return Self::of(places.collect(), Found::default());
            }
            Self::More(more) => {
                let places = more.places.iter_mut().map(|(_, place)| place);
                places.filter(|place| place.end != 0).for_each(|place| *place = change(*place));
            }
        }
        self
    }
}

impl Near {
    /// Notes where a member stands, where that can be noted.
    fn note(&mut self, key: Key, Place { start, value, end }: Place) -> bool {
        let noted = (u8::try_from(value - start), u16::try_from(start), u16::try_from(end));
        let (Ok(gap), Ok(start), Ok(end)) = noted else { return false };
        *self = Self { key: Some(key), gap, start, end };
        true
    }

    fn place(self) -> Place {
        let start = u32::from(self.start);
        Place { start, value: start + u32::from(self.gap), end: self.end.into() }
    }
}
