//! What a caller may have meant by an unknown name. Pure.

use super::shelf::Entry;

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
        let edits = if *entry.own == *unknown { 0 } else { edits(unknown, &entry.public)? };
        Some((edits, &*entry.public))
    });
    near.min_by_key(|(edits, _)| *edits).map(|(_, public)| public)
}

fn edits(a: &str, b: &str) -> Option<usize> {
    if a.len().abs_diff(b.len()) > EDITS_MAX {
        return None;
    }
    // Of a short name, most must be right.
    Some(strsim::levenshtein(a, b)).filter(|edits| *edits <= EDITS_MAX && edits * 2 < a.len())
}

/// A caller's text, short enough for a message.
pub(super) fn shown(text: &str) -> &str {
    text.char_indices().nth(SHOWN_CHARS_MAX).map_or(text, |(at, _)| &text[..at])
}
