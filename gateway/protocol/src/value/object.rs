//! The raw params or result of a frame: its bytes, and where the members that the gateway acts on stand.

// The members that the gateway acts on, by their keys.
mod key;
// What is known of an object: where its members stand, and what is odd about them.
mod known;

use super::spelling;
use super::spelling::{Found, META_KEYS, Spots, Twofold};
use crate::json;
use crate::json::{Fault, Members};
use bytes::{BufMut, Bytes};
pub use key::Key;
use key::{KEYS, recognise};
use known::{Known, Place, Places};
use smallvec::SmallVec;
use std::cmp::Ordering;

/// A JSON object as its sender wrote it, walked one level deep and once.
#[derive(Debug, Clone)]
pub struct Object {
    raw: Bytes,
    known: Known,
}

/// What becomes of one member when the object is written anew.
#[derive(Debug, Clone, Copy)]
pub enum Edit<'a> {
    /// The value is replaced; a member that was absent is put first.
    Set(&'a [u8]),
    /// The member is left out.
    Drop,
}

/// Equal where the bytes are.
impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw
    }
}

impl Eq for Object {}

impl Default for Object {
    fn default() -> Self {
        Self::empty()
    }
}

impl Object {
    /// `{}`
    pub fn empty() -> Self {
        Self { raw: Bytes::from_static(b"{}"), known: Known::default() }
    }

    /// Walks a text that is one object.
    pub fn parse(raw: Bytes) -> Result<Self, Fault> {
        std::str::from_utf8(&raw).map_err(|_| Fault::Utf8)?;
        let start = json::space(&raw, 0);
        let (object, end) = Self::walk(&raw, start, &mut Spots::default())?;
        json::finish(&raw, end)?;
        Ok(object)
    }

    /// Walks the object that starts at `start` of a longer text; returns it and where it ended. Notes where the members of its `_meta`
    /// stand in it.
    pub(crate) fn walk(text: &Bytes, start: usize, meta: &mut Spots) -> Result<(Self, usize), Fault> {
        let mut places = Places::new();
        let (mut found, mut variants) = (Found::default(), 0_u32);
        let mut members = Members::at(text, start)?;
        while let Some(member) = members.next_key()? {
            let Some((key, is_exact)) = member.key(text).and_then(|key| recognise(&key)) else {
                members.resume(json::value(text, member.value)?);
                continue;
            };
            let below = match key {
                Key::Meta => Some(&spelling::META),
                Key::Reference => Some(&spelling::REFERENCE),
                Key::Task => Some(&spelling::TASK),
                Key::Capabilities => Some(&spelling::CAPABILITIES),
                _ => None,
            };
            let end = match below.filter(|_| text.get(member.value) == Some(&b'{')) {
                Some(level) if key == Key::Meta => {
                    let mut note = |key, value, end| meta.note(key, value - start, end - start);
                    spelling::walk(text, member.value, level, &mut found, &mut note)?
                }
                Some(level) => spelling::walk(text, member.value, level, &mut found, &mut spelling::unnoted)?,
                None => json::value(text, member.value)?,
            };
            members.resume(end);
            let place = known::place_in(&mut places, key);
            if place.end != 0 || variants & (1 << key as u32) != 0 {
                found.note(Twofold::new("", KEYS[key as usize], true));
            }
            if !is_exact {
                variants |= 1 << key as u32;
                found.note(Twofold::new("", KEYS[key as usize], false));
                continue;
            }
            *place = Place {
                start: (member.start - start) as u32,
                value: (member.value - start) as u32,
                end: (end - start) as u32,
            };
        }
        let end = members.end();
        if end - start > u32::MAX as usize {
            return Err(Fault::Syntax(u32::MAX as usize));
        }
        Ok((Self { raw: text.slice(start..end), known: Known::of(places, found) }, end))
    }

    /// The same in memory of its own: it keeps nothing of what it was read from.
    pub fn detached(self) -> Self {
        Self { raw: Bytes::copy_from_slice(&self.raw), ..self }
    }

    /// The bytes as they came.
    pub fn raw(&self) -> &Bytes {
        &self.raw
    }

    /// A key that the gateway acts on and that stands twice, here or in `ref`, `task` and `_meta`: such an object means one
    /// thing to one program and another to the next, and is refused.
    pub fn doubled(&self) -> Option<Twofold> {
        self.known.more()?.found.double
    }

    /// A key that is none that the gateway acts on, and that lenient programs take for one.
    pub fn misspelled(&self) -> Option<Twofold> {
        self.known.more()?.found.variant
    }

    /// The raw value of a member.
    pub fn get(&self, key: Key) -> Option<&[u8]> {
        let place = self.known.place(key)?;
        Some(&self.raw[place.value as usize..place.end as usize])
    }

    /// The raw value of a member, sharing the object's memory.
    pub fn share(&self, key: Key) -> Option<Bytes> {
        let place = self.known.place(key)?;
        Some(self.raw.slice(place.value as usize..place.end as usize))
    }

    /// The members of `_meta`, in the order of [`META_KEYS`], as the walk has noted them; `None` where there are none, or others besides.
    pub(crate) fn in_meta(&self, noted: &Spots) -> Option<[Option<Bytes>; META_KEYS.len()]> {
        let member = noted.members()?;
        Some(std::array::from_fn(|key| member(key).map(|place| self.raw.slice(place))))
    }

    /// The text of a member that is a string.
    pub fn text(&self, key: Key) -> Option<std::borrow::Cow<'_, str>> {
        json::unquote(self.get(key)?)
    }

    /// The raw value of any member, by a walk: for what is asked rarely.
    pub fn find(&self, key: &str) -> Option<&[u8]> {
        json::get(&self.raw, key)
    }

    /// Writes the object with some members changed; everything else stays byte for byte, in its order.
    pub fn write<B: BufMut>(&self, edits: &[(Key, Edit<'_>)], out: &mut B) {
        // Nearly all that is sent differs in one member.
        if let [(key, Edit::Set(value))] = edits
            && let Some(place) = self.known.place(*key)
        {
            out.put_slice(&self.raw[..place.value as usize]);
            out.put_slice(value);
            return out.put_slice(&self.raw[place.end as usize..]);
        }
        if let [(key, Edit::Drop)] = edits
            && self.known.place(*key).is_none()
        {
            return out.put_slice(&self.raw);
        }
        let mut present: SmallVec<[(Place, Edit<'_>); 6]> = Default::default();
        let mut comma = false;
        out.put_u8(b'{');
        for (key, edit) in edits {
            match (self.known.place(*key), edit) {
                (Some(place), edit) => present.push((place, *edit)),
                (None, Edit::Set(value)) => {
                    separate(&mut comma, out);
                    out.put_u8(b'"');
                    out.put_slice(KEYS[*key as usize].as_bytes());
                    out.put_slice(b"\":");
                    out.put_slice(value);
                }
                (None, Edit::Drop) => {}
            }
        }
        present.sort_unstable_by_key(|(place, _)| place.start);
        // The object is written as runs of members; a run ends where a member is left out, and takes its comma along.
        let mut at = 1;
        let mut inside_run = false;
        for (place, edit) in present {
            let upto = if matches!(edit, Edit::Set(_)) { place.value } else { place.start } as usize;
            let mut run = &self.raw[at..upto];
            if let Edit::Drop = edit {
                let bare = run.trim_ascii_end();
                run = bare.strip_suffix(b",").unwrap_or(bare);
            }
            if !inside_run && !run.is_empty() {
                separate(&mut comma, out);
            }
            out.put_slice(run);
            at = place.end as usize;
            match edit {
                Edit::Set(value) => out.put_slice(value),
                Edit::Drop => {
                    let next = json::space(&self.raw, at);
                    at = if self.raw[next] == b',' { next + 1 } else { next };
                }
            }
            inside_run = matches!(edit, Edit::Set(_));
        }
        let rest = &self.raw[at..self.raw.len() - 1];
        if !inside_run && !rest.trim_ascii_start().is_empty() {
            separate(&mut comma, out);
        }
        out.put_slice(rest);
        out.put_u8(b'}');
    }

    /// [`Self::write`] into bytes of its own.
    pub fn with(&self, edits: &[(Key, Edit<'_>)]) -> Bytes {
        let set = |(_, edit): &(Key, Edit<'_>)| if let Edit::Set(value) = edit { value.len() } else { 0 };
        let mut out = Vec::with_capacity(self.raw.len() + edits.iter().map(set).sum::<usize>() + 64);
        self.write(edits, &mut out);
        out.into()
    }

    /// The object with one member's value replaced by another JSON value; it is copied, but not walked again.
    pub fn set(self, key: Key, value: &[u8]) -> Self {
        self.set_by(key, value, |parts| parts.concat().into())
    }

    /// As [`Self::set`]; `join` copies the parts one behind the other.
    pub fn set_by(mut self, key: Key, value: &[u8], join: impl FnOnce(&[&[u8]]) -> Bytes) -> Self {
        let Some(changed) = self.known.place(key) else {
            let raw = self.with(&[(key, Edit::Set(value))]);
            return Self::parse(raw).expect("an object and a value make an object");
        };
        let (before, after) = (&self.raw[..changed.value as usize], &self.raw[changed.end as usize..]);
        self.raw = join(&[before, value, after]);
        let moved = |at: u32| (at as usize + value.len() - (changed.end - changed.value) as usize) as u32;
        self.known = self.known.moved(|Place { start, value, end }| match start.cmp(&changed.start) {
            Ordering::Less => Place { start, value, end },
            Ordering::Equal => Place { start, value, end: moved(end) },
            Ordering::Greater => Place { start: moved(start), value: moved(value), end: moved(end) },
        });
        self
    }
}

/// Writes the comma between two runs, from the second run on.
fn separate<B: BufMut>(comma: &mut bool, out: &mut B) {
    if std::mem::replace(comma, true) {
        out.put_u8(b',');
    }
}

#[cfg(test)]
mod tests;
