//! One list of an upstream as it is kept: its items, each with memory of its own, counted for as long as anybody has the list.

use super::item::Item;
use crate::memory::StandingCharge;
use crate::memory::budget::{Budget, Spent};
use crate::upstream::config::Config;
use std::ops::Deref;
use std::sync::Arc;

/// So many of those that are left out are known by name.
pub(super) const LEFT_OUT_MAX: usize = 1000;
/// What one of them takes beside its name.
const LEFT_OUT_BYTES: usize = 64;

/// Why something that an upstream offers is in no list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeftOut {
    NotAllowed,
    Denied,
    TooLarge,
    Annotations,
    OfGateway,
    Surplus,
}

impl LeftOut {
    /// Why a tool of this name is left out, where it is for that.
    pub(super) fn by(config: &Config, tool: &str) -> Option<Self> {
        if !config.tools.admits(tool) {
            let is_denied = config.tools.deny.iter().any(|glob| glob.matches(tool));
            return Some(if is_denied { Self::Denied } else { Self::NotAllowed });
        }
        if tool != Item::LOGIN || !config.has_personal_logins() {
            return None;
        }
        tracing::warn!(upstream = &*config.name, tool, "tool left out: the gateway's own has its name");
        Some(Self::OfGateway)
    }

    fn why(self) -> &'static str {
        match self {
            Self::NotAllowed => "no pattern of `tools.allow` of its upstream fits it",
            Self::Denied => "a pattern of `tools.deny` of its upstream fits it",
            Self::TooLarge => "its definition has more than 1 MiB",
            Self::Annotations => "its header annotations are invalid; the log says what is wrong with them",
            Self::OfGateway => "its name is that of the gateway's own tool to log in there",
            Self::Surplus => "its upstream lists more than is kept (10,000 items or 64 MiB)",
        }
    }
}

/// A list of tools, resources, templates or prompts. Cheap to clone; clones are the same list.
#[derive(Debug, Clone, Default)]
pub struct Listing(Arc<Counted>);

#[derive(Debug, Default)]
struct Counted {
    items: Vec<Item>,
    /// What the upstream offers besides, by name, and why it is not kept.
    left_out: Vec<(Box<str>, LeftOut)>,
    _charge: Option<StandingCharge>,
}

impl Deref for Listing {
    type Target = [Item];

    fn deref(&self) -> &[Item] {
        &self.0.items
    }
}

impl Listing {
    /// These, which are the gateway's own and counted nowhere.
    pub(crate) fn of(items: Vec<Item>) -> Self {
        Self(Arc::new(Counted { items, left_out: Vec::new(), _charge: None }))
    }

    /// What its upstream offers besides, by name, and why it is left out; not all where there are very many.
    pub fn left_out(&self) -> impl Iterator<Item = (&str, &'static str)> {
        self.0.left_out.iter().map(|(name, why)| (&**name, why.why()))
    }

    /// How many of them the configuration leaves out, and how many cannot be used.
    pub fn left_out_by(&self) -> [usize; 2] {
        let is_filtered = |why: &LeftOut| matches!(why, LeftOut::NotAllowed | LeftOut::Denied);
        let filtered = self.0.left_out.iter().filter(|(_, why)| is_filtered(why)).count();
        [filtered, self.0.left_out.len() - filtered]
    }

    /// Whether a client could tell the two apart.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let same = |(one, other): (&Item, &Item)| one.is_same(other);
        Arc::ptr_eq(&self.0, &other.0) || (self.len() == other.len() && self.iter().zip(other.iter()).all(same))
    }
}

/// A list while it is read. What is as it was before is not kept twice, and a list that did not change is not kept anew at all.
pub(super) struct NewListing {
    budget: Budget,
    before: Listing,
    /// So many of its first items are those of the list before. Nothing else was read while `items` is empty.
    same: usize,
    items: Vec<Item>,
    left_out: Vec<(Box<str>, LeftOut)>,
    charge: Option<StandingCharge>,
}

impl NewListing {
    /// A list that is counted in this budget, and was `before` when it was last read.
    pub(super) fn after(before: &Listing, budget: &Budget) -> Self {
        let (budget, before) = (budget.clone(), before.clone());
        Self { budget, before, same: 0, items: Vec::new(), left_out: Vec::new(), charge: None }
    }

    /// How many items there are.
    pub(super) fn len(&self) -> usize {
        if self.items.is_empty() { self.same } else { self.items.len() }
    }

    /// Takes an item; an error where there is no memory for it.
    pub(super) fn push(&mut self, item: Item) -> Result<(), Spent> {
        if self.items.is_empty() && self.before.get(self.same).is_some_and(|before| before.is_same(&item)) {
            self.same += 1;
            return Ok(());
        }
        self.part()?;
        self.count(item.weight())?;
        self.items.push(item.detached());
        Ok(())
    }

    /// Notes what is not taken, where there is room for that.
    pub(super) fn leave_out(&mut self, name: &str, why: LeftOut) {
        if self.left_out.len() < LEFT_OUT_MAX && self.count(LEFT_OUT_BYTES + name.len()).is_ok() {
            self.left_out.push((name.into(), why));
        }
    }

    /// What was read.
    pub(super) fn finish(mut self) -> Result<Listing, Spent> {
        let is_same = self.same == self.before.len() && self.left_out == self.before.0.left_out;
        if self.items.is_empty() && is_same {
            return Ok(self.before);
        }
        self.part()?;
        self.items.shrink_to_fit();
        self.left_out.shrink_to_fit();
        Ok(Listing(Arc::new(Counted { items: self.items, left_out: self.left_out, _charge: self.charge })))
    }

    /// From now on it is another list than before, which may have its first items in common with that.
    fn part(&mut self) -> Result<(), Spent> {
        if self.items.is_empty() && self.same > 0 {
            let before = self.before.clone();
            let same = &before[..self.same];
            self.count(same.iter().map(Item::weight).sum())?;
            self.items.extend_from_slice(same);
        }
        Ok(())
    }

    fn count(&mut self, more: usize) -> Result<(), Spent> {
        match &mut self.charge {
            Some(charge) => charge.grow(more),
            none => {
                *none = Some(self.budget.stand_listed(more)?);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
impl FromIterator<Item> for Listing {
    fn from_iter<T: IntoIterator<Item = Item>>(items: T) -> Self {
        items.into_iter().collect::<Vec<_>>().into()
    }
}

#[cfg(test)]
impl From<Vec<Item>> for Listing {
    fn from(items: Vec<Item>) -> Self {
        Self(Arc::new(Counted { items, left_out: Vec::new(), _charge: None }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::account::Kind;
    use bytes::Bytes;

    fn item(name: usize, size: usize) -> Item {
        let raw = format!("{{\"name\":\"{name}\",\"description\":\"{}\"}}", "x".repeat(size));
        Item::parse(Bytes::from(raw), "name").unwrap()
    }

    fn read(budget: &Budget, before: &Listing, names: std::ops::Range<usize>) -> Result<Listing, Spent> {
        let mut list = NewListing::after(before, budget);
        names.into_iter().try_for_each(|name| list.push(item(name, 64 << 10)))?;
        list.finish()
    }

    #[test]
    fn a_list_is_counted_once_however_often_it_is_read_until_nobody_has_it() {
        let budget = Budget::new(64 << 20);
        let first = read(&budget, &Listing::default(), 0..32).unwrap();
        let once = budget.used();
        assert!((2 << 20..3 << 20).contains(&once), "{once}");
        let same = read(&budget, &first, 0..32).unwrap();
        assert!(same.is_same(&first) && budget.used() == once, "what did not change is the list before");
        let longer = read(&budget, &same, 0..40).unwrap();
        assert_eq!(longer.len(), 40);
        assert_eq!(
            longer[3].definition.raw().as_ptr(),
            first[3].definition.raw().as_ptr(),
            "and so are its first items"
        );
        drop((first, same));
        let shorter = read(&budget, &longer, 0..8).unwrap();
        assert_eq!(shorter.len(), 8);
        drop(longer);
        assert!((512 << 10..640 << 10).contains(&budget.used()), "{}", budget.used());
        assert_eq!(budget.used(), budget.used_by(Kind::List));
        drop(shorter);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn what_is_left_out_is_kept_with_the_list_by_name_up_to_a_bound() {
        let budget = Budget::new(64 << 20);
        let read = |before: &Listing, left_out: std::ops::Range<usize>| {
            let mut list = NewListing::after(before, &budget);
            list.push(item(1, 10)).unwrap();
            left_out.for_each(|name| list.leave_out(&format!("t{name}"), LeftOut::Denied));
            list.finish().unwrap()
        };
        let first = read(&Listing::default(), 0..2);
        let names = |list: &Listing| list.left_out().map(|(name, _)| name.to_owned()).collect::<Vec<_>>();
        assert_eq!(names(&first), ["t0", "t1"]);
        assert!(Arc::ptr_eq(&read(&first, 0..2).0, &first.0), "nothing has changed");
        let next = read(&first, 1..2);
        assert_eq!((names(&next), next.len()), (vec!["t1".to_owned()], 1));
        assert!(next.is_same(&first), "no client could tell");
        let many = read(&next, 0..LEFT_OUT_MAX + 5);
        assert_eq!(names(&many).len(), LEFT_OUT_MAX);
        assert!(budget.used() > 0);
        drop((first, next, many));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_list_that_does_not_fit_is_refused_and_leaves_nothing_behind() {
        let budget = Budget::new(64 << 20);
        let before = read(&budget, &Listing::default(), 0..32).unwrap();
        let once = budget.used();
        assert!(read(&budget, &before, 1..1_000).is_err());
        assert_eq!(budget.used(), once);
    }

    #[test]
    fn an_item_keeps_nothing_of_the_page_that_it_came_on() {
        let page = Bytes::from(format!("{{\"name\":\"t\"}}{}", "x".repeat(1 << 20)));
        let mut list = NewListing::after(&Listing::default(), &Budget::default());
        list.push(Item::parse(page.slice(..12), "name").unwrap()).unwrap();
        let list = list.finish().unwrap();
        assert_ne!(list[0].definition.raw().as_ptr(), page.as_ptr());
        assert!(page.is_unique(), "nobody else has the page");
    }
}
