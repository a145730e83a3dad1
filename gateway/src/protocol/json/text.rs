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

/// Whether a JSON text has half of a UTF-16 pair alone: programs whose strings are UTF-8 cannot read that.
pub fn has_lone_surrogate(text: &[u8]) -> bool {
    steps::add(text.len());
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let mut at = 0;
    while let Some(next) = memchr::memchr(b'\\', &text[at..]) {
        at += next;
        at += match unit(at) {
            Some(0xd800..0xdc00) if unit(at + 6).is_some_and(|low| (0xdc00..0xe000).contains(&low)) => 12,
            Some(0xd800..0xe000) => return true,
            _ => 2,
        };
        at = at.min(text.len());
    }
    false
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
