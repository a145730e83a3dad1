//! Raw objects and arrays written anew, member by member: what does not change stays byte for byte.

use crate::json;
use crate::json::Members;
use memchr::memmem::Finder;
use std::sync::OnceLock;

/// What becomes of one member.
pub(super) enum Fate {
    /// It stays as it is.
    Stays,
    /// It is left out.
    Goes,
    /// Its value is replaced.
    Becomes(Vec<u8>),
    /// All of it is replaced: `"key":value`, one or several joined by commas.
    Instead(Vec<u8>),
}

impl Fate {
    /// Replaced where there is something to replace it with.
    pub(super) fn of(change: Option<Vec<u8>>) -> Self {
        change.map_or(Self::Stays, Self::Becomes)
    }

    /// Left out where this holds.
    pub(super) fn gone_if(holds: bool) -> Self {
        if holds { Self::Goes } else { Self::Stays }
    }
}

/// An object with each member judged by its name and its raw value; `None` where nothing changes, or it is no object.
pub(super) fn members(raw: &[u8], mut judge: impl FnMut(&str, &[u8]) -> Fate) -> Option<Vec<u8>> {
    let mut judged = Vec::new();
    for member in Members::of(raw).ok()? {
        let member = member.ok()?;
        let key = json::unquote(&raw[member.start..member.key_end]).unwrap_or_default();
        judged.push((member, judge(&key, &raw[member.value..member.end])));
    }
    if judged.iter().all(|(_, fate)| matches!(fate, Fate::Stays)) {
        return None;
    }
    let mut out = Vec::with_capacity(raw.len() + 32);
    for (member, fate) in judged {
        let pieces: [&[u8]; 2] = match &fate {
            Fate::Goes => continue,
            Fate::Stays => [&raw[member.start..member.end], b""],
            Fate::Becomes(value) => [&raw[member.start..member.value], value],
            Fate::Instead(written) => [written, b""],
        };
        out.push(if out.is_empty() { b'{' } else { b',' });
        pieces.iter().for_each(|piece| out.extend_from_slice(piece));
    }
    if out.is_empty() {
        out.push(b'{');
    }
    out.push(b'}');
    Some(out)
}

/// An array with each element judged by its raw value: replaced by one or by several joined by commas; `None` where
/// nothing changes, or it is no array.
pub(super) fn elements(raw: &[u8], mut judge: impl FnMut(&[u8]) -> Option<Vec<u8>>) -> Option<Vec<u8>> {
    let places = json::elements(raw).ok()?;
    let changes: Vec<_> = places.iter().map(|place| judge(&raw[place.clone()])).collect();
    if changes.iter().all(Option::is_none) {
        return None;
    }
    let mut out = Vec::with_capacity(raw.len() + 32);
    for (place, change) in places.into_iter().zip(changes) {
        out.push(if out.is_empty() { b'[' } else { b',' });
        out.extend_from_slice(change.as_deref().unwrap_or(&raw[place]));
    }
    out.push(b']');
    Some(out)
}

/// An array with a text block more, at its end; composed in one go.
pub(super) fn append_words(array: &[u8], text: &str) -> Vec<u8> {
    const BEGIN: &[u8] = b"{\"type\":\"text\",\"text\":";
    let open = array.trim_ascii_end();
    let open = open.strip_suffix(b"]").unwrap_or(b"[").trim_ascii_end();
    let mut out = Vec::with_capacity(open.len() + BEGIN.len() + json::quoted_len(text) + 4);
    out.extend_from_slice(open);
    if open != b"[" {
        out.push(b',');
    }
    out.extend_from_slice(BEGIN);
    json::quote_to(text, &mut out);
    out.extend_from_slice(b"}]");
    out
}

/// The array's elements, raw; nothing where it is none.
pub(super) fn each(array: &[u8]) -> impl Iterator<Item = &[u8]> {
    json::elements(array).unwrap_or_default().into_iter().map(|place| &array[place])
}

/// The text of a member that is a string.
pub(super) fn text(object: &[u8], key: &str) -> Option<String> {
    json::get(object, key).and_then(json::unquote).map(Into::into)
}

/// Whether the text may hold this word as a name or a value; an escape could spell any.
pub(super) fn may_hold(raw: &[u8], word: &Word) -> bool {
    let has_escape = || memchr::memchr_iter(b'\\', raw).any(|at| raw.get(at + 1) == Some(&b'u'));
    word.is_in(raw) || has_escape()
}

/// A word that is searched for. To prepare a search costs more than to search a plain result: it is done once.
pub(super) struct Word(&'static str, OnceLock<Finder<'static>>);

impl Word {
    pub(super) const fn new(text: &'static str) -> Self {
        Self(text, OnceLock::new())
    }

    fn is_in(&self, raw: &[u8]) -> bool {
        self.1.get_or_init(|| Finder::new(self.0)).find(raw).is_some()
    }
}
