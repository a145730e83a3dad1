//! What each key takes, noted while nothing is read: from that the schema of the configuration is made, so that it cannot differ.

use std::cell::RefCell;
use std::collections::BTreeSet;

/// What stands for a name that a person chooses, and for the place in a list.
pub(crate) const ANY: &str = "*";

/// What a key takes in a file. Every text may hold references.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// These keys and no others.
    Table,
    /// Tables of one kind, each with a name.
    Named,
    /// A list of tables.
    Tables,
    Text,
    /// `30s`, or a number of seconds.
    Duration,
    /// `64KiB`, or a number of bytes.
    Size,
    /// A number of nothing.
    Number,
    /// A whole number between these.
    Count(usize, usize),
    Flag,
    Word(Vec<&'static str>),
    /// A list of texts.
    List,
    /// A text, or a list of texts.
    OneOrList,
    /// A table of single values.
    Pairs,
}

/// The keys that were asked for, in their order.
#[derive(Debug, Default)]
pub(crate) struct Sketch {
    keys: RefCell<Vec<(Vec<String>, Kind)>>,
    known: RefCell<BTreeSet<Vec<String>>>,
}

impl Sketch {
    /// Notes what a key takes; what was said first is nearer to what it means.
    pub(crate) fn note(&self, path: Vec<String>, kind: Kind) {
        if self.known.borrow_mut().insert(path.clone()) {
            self.keys.borrow_mut().push((path, kind));
        }
    }

    /// Notes that a table holds tables with names of their own.
    pub(crate) fn name(&self, path: &[String]) {
        if let Some((_, kind)) = self.keys.borrow_mut().iter_mut().find(|(known, _)| known == path) {
            *kind = Kind::Named;
        }
    }

    /// All that was noted.
    pub(crate) fn into_keys(self) -> Vec<(Vec<String>, Kind)> {
        self.keys.into_inner()
    }
}
