//! What a caller may have meant by an unknown name. Pure.

use super::entry::Entry;

/// So many edits apart, a name is no longer what was meant.
const EDITS_MAX: usize = 3;
/// Longer names are not compared: it would cost more than it helps.
const NAME_CHARS_MAX: usize = 80;
/// So much of a foreign name stands in a message.
const SHOWN_CHARS_MAX: usize = 200;

/// The public name nearest to an unknown one: the same name without its prefix, else a slip of the pen.
pub(super) fn nearest<'a>(unknown: &str, entries: impl Iterator<Item = &'a Entry>) -> Option<&'a str> {
    if unknown.len() > NAME_CHARS_MAX {
        return None;
    }
    let near = entries.filter_map(|entry| {
        let edits = if *entry.own == *unknown { 0 } else { edits(unknown, entry)? };
        Some((edits, &*entry.public))
    });
    near.min_by_key(|(edits, _)| *edits).map(|(_, public)| public)
}

/// How many slips lead from one name to an entry's. What stands before the own name must be right: it is the same for many.
fn edits(unknown: &str, entry: &Entry) -> Option<usize> {
    let (unknown, known) = match entry.public.strip_suffix(&*entry.own) {
        Some(prefix) => (unknown.strip_prefix(prefix)?, &*entry.own),
        None => (unknown, &*entry.public),
    };
    if unknown.len().abs_diff(known.len()) > EDITS_MAX {
        return None;
    }
    // Most of a short name must be right, too.
    Some(strsim::osa_distance(unknown, known)).filter(|edits| *edits <= EDITS_MAX && edits * 2 < known.len())
}

/// A caller's text, short enough for a message.
pub(super) fn shown(text: &str) -> &str {
    text.char_indices().nth(SHOWN_CHARS_MAX).map_or(text, |(at, _)| &text[..at])
}
