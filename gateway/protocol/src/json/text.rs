//! JSON strings and the texts that they stand for.

use crate::steps;
use std::borrow::Cow;
use std::ops::Range;

/// The text of a raw JSON string; `None` where it is none, or holds a lone surrogate.
pub fn unquote(raw: &[u8]) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    steps::add(inner.len());
    if !inner.contains(&b'\\') {
        return std::str::from_utf8(inner).ok().map(Cow::Borrowed);
    }
    serde_json::from_slice::<String>(raw).ok().map(Cow::Owned)
}

/// The text of a raw JSON string, with U+FFFD in the place of each lone surrogate.
pub fn unquote_lossy(raw: &[u8]) -> Option<Cow<'_, str>> {
    if let Some(text) = unquote(raw) {
        return Some(text);
    }
    let mut text = String::with_capacity(raw.len());
    for (_, character) in characters(inside(raw)?) {
        text.push(character);
    }
    Some(Cow::Owned(text))
}

/// The places in a raw JSON string of places in its text, as [`unquote_lossy`] gives it. They are in order and do not overlap.
pub fn written_places(raw: &[u8], places: &[Range<usize>]) -> Vec<Range<usize>> {
    let Some(inner) = inside(raw) else { return Vec::new() };
    let mut written = Vec::with_capacity(places.len());
    let (mut characters, mut at, mut written_at) = (characters(inner), 0, 0);
    let mut written_place_of = |place: usize| {
        while at < place
            && let Some((length, character)) = characters.next()
        {
            at += character.len_utf8();
            written_at += length;
        }
        written_at + 1
    };
    for place in places {
        written.push(written_place_of(place.start)..written_place_of(place.end));
    }
    written
}

fn inside(raw: &[u8]) -> Option<&str> {
    std::str::from_utf8(raw.strip_prefix(b"\"")?.strip_suffix(b"\"")?).ok()
}

/// The characters of a valid JSON string, each with the length in which it is written.
fn characters(inner: &str) -> impl Iterator<Item = (usize, char)> {
    steps::add(inner.len());
    let mut rest = inner;
    std::iter::from_fn(move || {
        let character = rest.chars().next()?;
        let (length, character) = if character == '\\' { escaped(rest) } else { (character.len_utf8(), character) };
        rest = rest.get(length..).unwrap_or_default();
        Some((length, character))
    })
}

/// The character of the escape that a text begins with, and how long the escape is.
fn escaped(text: &str) -> (usize, char) {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    match text.as_bytes().get(1) {
        Some(b'u') => match (unit(0), unit(6)) {
            (Some(high @ 0xd800..0xdc00), Some(low @ 0xdc00..0xe000)) => {
                (12, char::decode_utf16([high, low]).next().and_then(Result::ok).unwrap_or(char::REPLACEMENT_CHARACTER))
            }
            (first, _) => {
                (6, first.and_then(|unit| char::from_u32(unit.into())).unwrap_or(char::REPLACEMENT_CHARACTER))
            }
        },
        Some(b'n') => (2, '\n'),
        Some(b't') => (2, '\t'),
        Some(b'r') => (2, '\r'),
        Some(b'b') => (2, '\u{8}'),
        Some(b'f') => (2, '\u{c}'),
        Some(other) => (2, char::from(*other)),
        None => (1, '\\'),
    }
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
