//! Which tools are offered only to clients that can be asked: known where the lists were read for those who can and for those who cannot.

use crate::health::StatusHandle;
use crate::protocol::capabilities::Capabilities;
use crate::upstream::config::OFFERS;
use crate::upstream::instance::inventory::Inventory;
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

/// So many tools are named for each set of capabilities …
const NAMED_MAX: usize = 8;
/// … and so much of a name.
const NAME_CHARS_MAX: usize = 64;
/// The word of the remark.
const REMARK: &str = "asked";

/// What is remarked of an upstream: for each set of capabilities, by its number.
pub(super) struct Missing {
    handle: StatusHandle,
    said: Mutex<(u64, BTreeMap<u64, String>)>,
}

/// The place of one set among them; what is said of it goes with it.
pub(super) struct Said {
    of: Arc<Missing>,
    number: u64,
}

impl Missing {
    pub(super) fn new(handle: StatusHandle) -> Arc<Self> {
        Arc::new(Self { handle, said: Mutex::default() })
    }

    /// A place for another set.
    pub(super) fn place(self: &Arc<Self>) -> Said {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.0 += 1;
        Said { of: self.clone(), number: said.0 }
    }
}

impl Said {
    /// From now on this is said of it, or nothing.
    pub(super) fn says(&self, text: Option<String>) {
        let mut said = self.of.said.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match &text {
            Some(text) => said.1.insert(self.number, text.clone()),
            None => said.1.remove(&self.number),
        };
        if before == text {
            return;
        }
        let mut all: Vec<&str> = said.1.values().map(String::as_str).collect();
        all.sort_unstable();
        all.dedup();
        let all = all.join("; ");
        // Held until it is shown: another one may be said meanwhile.
        self.of.handle.update(|health| match all.is_empty() {
            true => _ = health.remarks.remove(REMARK),
            false => _ = health.remarks.insert(REMARK, all),
        });
    }
}

impl Drop for Said {
    fn drop(&mut self) {
        self.says(None);
    }
}

/// What clients that declare `own` are not offered of what is offered to those who declare `all`, and the other way round.
pub(super) fn told(all: (&Inventory, Capabilities), own: (&Inventory, Capabilities)) -> Option<String> {
    let lacking = kinds(all.1, own.1);
    let without = lost(all.0, own.0).filter(|_| !lacking.is_empty());
    let having = kinds(own.1, all.1);
    let only = lost(own.0, all.0).filter(|_| !having.is_empty());
    let without =
        without.map(|names| format!("not offered to clients that take no {}: {names}", lacking.join(" and no ")));
    let only = only.map(|names| format!("offered only to clients that take {}: {names}", having.join(" and ")));
    let both: Vec<String> = without.into_iter().chain(only).collect();
    (!both.is_empty()).then(|| both.join("; "))
}

/// The kinds of questions in one set that are not in the other.
fn kinds(one: Capabilities, other: Capabilities) -> Vec<&'static str> {
    let has = |set: Capabilities, kind| set.and(kind) != Capabilities::NONE;
    OFFERS.iter().filter(|(_, kind)| has(one, *kind) && !has(other, *kind)).map(|(word, _)| *word).collect()
}

/// The tools of the one that the other has not.
fn lost(of: &Inventory, to: &Inventory) -> Option<String> {
    let there: HashSet<&str> = to.tools.iter().map(|tool| &*tool.key).collect();
    let lost: Vec<&str> = of.tools.iter().map(|tool| &*tool.key).filter(|name| !there.contains(name)).collect();
    let named = |name: &&str| format!("`{}`", name.chars().take(NAME_CHARS_MAX).collect::<String>());
    let named: Vec<String> = lost.iter().take(NAMED_MAX).map(named).collect();
    let more = match lost.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!named.is_empty()).then(|| named.join(", ") + &more)
}
