//! JSON strings and the texts that they stand for.

use crate::steps;
use std::borrow::Cow;

/// The text of a raw JSON string; `None` where it is none, or holds a lone surrogate.
pub fn unquote(raw: &[u8]) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    steps::add(inner.len());
    if !inner.contains(&b'\\') {
        return std::str::from_utf8(inner).ok().map(Cow::Borrowed);
    }
    serde_json::from_slice::<String>(raw).ok().map(Cow::Owned)
}

/// How long the raw JSON string of a text is.
pub fn quoted_len(text: &str) -> usize {
    let more = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 8 | 12 => 1,
        0..0x20 => 5,
        _ => 0,
    };
    text.bytes().map(more).sum::<usize>() + text.len() + 2
}

/// The raw JSON string of a text, behind what there is.
pub fn quote_to(text: &str, out: &mut Vec<u8>) {
    serde_json::to_writer(out, text).expect("a string always has a JSON form");
}

/// The raw JSON string of a text.
pub fn quote(text: &str) -> String {
    serde_json::to_string(text).expect("a string always has a JSON form")
}
