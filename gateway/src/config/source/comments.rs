//! The text of JSON with comments: what is left without those, and where its keys stand.

use std::ops::Range;

use crate::steps;

/// The keys of a well written text, with their quotes, in its order.
pub(super) fn keys(text: &str) -> Vec<Range<usize>> {
    let plain = without_comments(text);
    let (bytes, mut at, mut keys) = (plain.as_bytes(), 0, Vec::new());
    while let Some(found) = memchr::memchr(b'"', &bytes[at..]) {
        let from = at + found;
        at = from + string_length(&bytes[from..]);
        let is_key = plain.get(at..).is_some_and(|rest| rest.trim_start().starts_with(':'));
        if is_key && plain.get(from + 1..at - 1).is_some_and(is_plain) {
            keys.push(from..at);
        }
    }
    keys
}

/// Comments and trailing commas as spaces, so that every place stays what it was.
pub(super) fn without_comments(text: &str) -> String {
    let mut out = text.as_bytes().to_vec();
    steps::add(out.len());
    let (mut at, mut comma) = (0, None);
    while at < out.len() {
        let rest = &text.as_bytes()[at..];
        let (length, blank) = match rest[0] {
            b'"' => (string_length(rest), false),
            b'/' if rest.starts_with(b"//") => (memchr::memchr(b'\n', rest).unwrap_or(rest.len()), true),
            b'/' if rest.starts_with(b"/*") => {
                (memchr::memmem::find(&rest[2..], b"*/").map_or(rest.len(), |end| end + 4), true)
            }
            _ => (1, false),
        };
        match rest[0] {
            _ if blank => out[at..at + length].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' '),
            b',' => comma = Some(at),
            b']' | b'}' => {
                if let Some(comma) = comma.take() {
                    out[comma] = b' ';
                }
            }
            byte if byte.is_ascii_whitespace() => {}
            _ => comma = None,
        }
        at += length;
    }
    // Only whole comments and single ASCII bytes were replaced, so it is UTF-8 still.
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

pub(super) fn string_length(text: &[u8]) -> usize {
    let mut at = 1;
    while at < text.len() && text[at] != b'"' {
        at += if text[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(text.len())
}

/// Whether a key is one: with other characters it may be a value that slipped into its place.
pub(super) fn is_plain(name: &str) -> bool {
    name.chars().all(|char| char.is_ascii_alphanumeric() || "-_.".contains(char))
}
