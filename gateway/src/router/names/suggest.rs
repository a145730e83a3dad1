//! What a caller may have meant by an unknown name. Pure.

use crate::router::catalog::Entry;
use crate::steps;

/// So many edits apart, a name is no longer what was meant.
const EDITS_MAX: usize = 3;
/// Longer names are not compared: it would cost more than it helps.
const NAME_CHARS_MAX: usize = 80;
/// So much is compared for one hint, in characters of one name times those of the other: some thousands of common names.
const COMPARED_MAX: usize = 1 << 20;
/// So much of a foreign name stands in a message.
const SHOWN_CHARS_MAX: usize = 200;

/// The public name nearest to an unknown one: the same name without its prefix, else a slip of the pen.
pub(crate) fn nearest<'a>(unknown: &str, entries: impl Iterator<Item = &'a Entry>) -> Option<&'a str> {
    if unknown.len() > NAME_CHARS_MAX {
        return None;
    }
    let mut left = COMPARED_MAX;
    let near = entries.filter_map(|entry| {
        steps::add(1);
        let edits = if *entry.own == *unknown { 0 } else { edits(unknown, entry, &mut left)? };
        Some((edits, &*entry.public))
    });
    near.min_by_key(|(edits, _)| *edits).map(|(_, public)| public)
}

/// How many slips lead from one name to an entry's. What stands before the own name must be right: it is the same for many.
fn edits(unknown: &str, entry: &Entry, left: &mut usize) -> Option<usize> {
    let (unknown, known) = match entry.public.strip_suffix(&*entry.own) {
        Some(prefix) => (unknown.strip_prefix(prefix)?, &*entry.own),
        None => (unknown, &*entry.public),
    };
    if unknown.len().abs_diff(known.len()) > EDITS_MAX {
        return None;
    }
    let cost = (unknown.len() + 1) * (known.len() + 1);
    *left = left.checked_sub(cost)?;
    steps::add(cost);
    // Most of a short name must be right, too.
    Some(strsim::osa_distance(unknown, known)).filter(|edits| *edits <= EDITS_MAX && edits * 2 < known.len())
}

/// A caller's text, short enough for a message.
pub(crate) fn shown(text: &str) -> &str {
    text.char_indices().nth(SHOWN_CHARS_MAX).map_or(text, |(at, _)| &text[..at])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::revision::Revision;
    use crate::router::names::{ByMember, MemberId};

    fn member() -> MemberId {
        ByMember::numbered([()]).ids().next().unwrap()
    }

    fn entries(count: usize) -> Vec<Entry> {
        let entry = |at: usize| {
            let name: std::sync::Arc<str> = format!("{}{at:06}", "n".repeat(60)).into();
            let (public, own) = (name.clone(), name);
            let (revision, definition) = (Revision::V2025_11_25, bytes::Bytes::new());
            let (member, changes) = (member(), Vec::new());
            Entry {
                public,
                own,
                own_raw: None,
                member,
                definition,
                changes,
                revision,
                is_of_gateway: false,
                headers: None,
            }
        };
        (0..count).map(entry).collect()
    }

    #[test]
    fn a_hint_costs_no_more_than_it_helps_however_many_names_there_are() {
        let (few, many) = (entries(50), entries(20_000));
        let unknown = format!("{}00004x", "n".repeat(60));
        assert_eq!(nearest(&unknown, few.iter()), Some(&*few[40].public));
        let cost = crate::steps::of(|| assert!(nearest(&unknown, many.iter()).is_some())).unwrap();
        assert!(cost < 2 * COMPARED_MAX as u64, "{cost} steps");
        assert_eq!(nearest(&many[19_999].own, many.iter()), Some(&*many[19_999].public));
    }
}
