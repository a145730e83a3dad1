//! The raw params or result of a frame: its bytes, and where the members that the gateway acts on stand.

use super::json::{self, Fault, Members};
use bytes::{BufMut, Bytes};

/// A member that the gateway acts on; all others are carried unseen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Key {
    /// `name`: a tool's or a prompt's.
    Name,
    /// `uri`: a resource's.
    Uri,
    /// `_meta`.
    Meta,
    /// `arguments`.
    Arguments,
    /// `requestState`.
    RequestState,
    /// `inputResponses`.
    InputResponses,
    /// `resultType`.
    ResultType,
    /// `isError`.
    IsError,
    /// `content`: of a tool's result.
    Content,
    /// `structuredContent`.
    StructuredContent,
    /// `ttlMs`.
    TtlMs,
    /// `cacheScope`.
    CacheScope,
    /// `progressToken`, in a progress notification.
    ProgressToken,
    /// `requestId`, in a cancellation.
    RequestId,
}

const KEYS: [(Key, &str); 14] = [
    (Key::Name, "name"),
    (Key::Uri, "uri"),
    (Key::Meta, "_meta"),
    (Key::Arguments, "arguments"),
    (Key::RequestState, "requestState"),
    (Key::InputResponses, "inputResponses"),
    (Key::ResultType, "resultType"),
    (Key::IsError, "isError"),
    (Key::Content, "content"),
    (Key::StructuredContent, "structuredContent"),
    (Key::TtlMs, "ttlMs"),
    (Key::CacheScope, "cacheScope"),
    (Key::ProgressToken, "progressToken"),
    (Key::RequestId, "requestId"),
];

/// Where a member stands: its key's quote, its value, its end. All zero = absent (an object's first byte is `{`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Place {
    start: u32,
    value: u32,
    end: u32,
}

/// A JSON object as its sender wrote it, walked one level deep and once.
#[derive(Debug, Clone)]
pub struct Object {
    raw: Bytes,
    /// `None` where the gateway acts on nothing in it. Boxed: an object is handed on far more often than looked into.
    known: Option<Box<Known>>,
}

/// What was found on the walk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Known {
    places: [Place; KEYS.len()],
    /// A key that the gateway acts on stands twice.
    twice: bool,
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
        Self { raw: Bytes::from_static(b"{}"), known: None }
    }

    /// Walks a text that is one object.
    pub fn parse(raw: Bytes) -> Result<Self, Fault> {
        std::str::from_utf8(&raw).map_err(|_| Fault::Utf8)?;
        let start = json::space(&raw, 0);
        let (object, end) = Self::walk(&raw, start)?;
        json::finish(&raw, end)?;
        Ok(object)
    }

    /// Walks the object that starts at `start` of a longer text; returns it and where it ended.
    pub(crate) fn walk(text: &Bytes, start: usize) -> Result<(Self, usize), Fault> {
        let mut known: Option<Box<Known>> = None;
        let mut members = Members::at(text, start)?;
        while let Some(member) = members.next_key()? {
            let end = json::value(text, member.value)?;
            members.resume(end);
            if let Some(key) = member.key(text).and_then(|key| recognise(&key)) {
                let known = known.get_or_insert_default();
                let place = &mut known.places[key as usize];
                known.twice |= place.end != 0;
                *place = Place {
                    start: (member.start - start) as u32,
                    value: (member.value - start) as u32,
                    end: (end - start) as u32,
                };
            }
        }
        let end = members.end();
        if end - start > u32::MAX as usize {
            return Err(Fault::Syntax(u32::MAX as usize));
        }
        Ok((Self { raw: text.slice(start..end), known }, end))
    }

    /// The bytes as they came.
    pub fn raw(&self) -> &Bytes {
        &self.raw
    }

    /// Whether a key that the gateway acts on stands twice: such an object means two things and is refused.
    pub fn is_ambiguous(&self) -> bool {
        self.known.as_ref().is_some_and(|known| known.twice)
    }

    /// The raw value of a member.
    pub fn get(&self, key: Key) -> Option<&[u8]> {
        let place = self.place(key)?;
        Some(&self.raw[place.value as usize..place.end as usize])
    }

    /// The raw value of a member, sharing the object's memory.
    pub fn share(&self, key: Key) -> Option<Bytes> {
        let place = self.place(key)?;
        Some(self.raw.slice(place.value as usize..place.end as usize))
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
        let mut present: smallvec::SmallVec<[(Place, Edit<'_>); 6]> = Default::default();
        let mut comma = false;
        out.put_u8(b'{');
        for (key, edit) in edits {
            match (self.place(*key), edit) {
                (Some(place), edit) => present.push((place, *edit)),
                (None, Edit::Set(value)) => {
                    separate(&mut comma, out);
                    out.put_u8(b'"');
                    out.put_slice(KEYS[*key as usize].1.as_bytes());
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
        let mut out = Vec::with_capacity(self.raw.len() + 64);
        self.write(edits, &mut out);
        out.into()
    }

    /// The object with one member's value replaced by another JSON value; it is copied, but not walked again.
    pub fn set(mut self, key: Key, value: &[u8]) -> Self {
        let Some(changed) = self.place(key) else {
            let raw = self.with(&[(key, Edit::Set(value))]);
            return Self::parse(raw).expect("an object and a value make an object");
        };
        let (before, after) = (&self.raw[..changed.value as usize], &self.raw[changed.end as usize..]);
        self.raw = [before, value, after].concat().into();
        let moved = |at: u32| (at as usize + value.len() - (changed.end - changed.value) as usize) as u32;
        let places = self.known.iter_mut().flat_map(|known| &mut known.places);
        for place in places.filter(|place| place.start >= changed.start && place.end != 0) {
            let is_it = place.start == changed.start;
            *place = Place {
                start: if is_it { place.start } else { moved(place.start) },
                value: if is_it { place.value } else { moved(place.value) },
                end: moved(place.end),
            };
        }
        self
    }

    fn place(&self, key: Key) -> Option<Place> {
        Some(self.known.as_ref()?.places[key as usize]).filter(|place| place.end != 0)
    }
}

/// Writes the comma between two runs, from the second run on.
fn separate<B: BufMut>(comma: &mut bool, out: &mut B) {
    if std::mem::replace(comma, true) {
        out.put_u8(b',');
    }
}

fn recognise(key: &[u8]) -> Option<Key> {
    Some(match key {
        b"name" => Key::Name,
        b"uri" => Key::Uri,
        b"_meta" => Key::Meta,
        b"arguments" => Key::Arguments,
        b"requestState" => Key::RequestState,
        b"inputResponses" => Key::InputResponses,
        b"resultType" => Key::ResultType,
        b"isError" => Key::IsError,
        b"content" => Key::Content,
        b"structuredContent" => Key::StructuredContent,
        b"ttlMs" => Key::TtlMs,
        b"cacheScope" => Key::CacheScope,
        b"progressToken" => Key::ProgressToken,
        b"requestId" => Key::RequestId,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn object(text: &str) -> Object {
        Object::parse(Bytes::copy_from_slice(text.as_bytes())).unwrap()
    }

    #[test]
    fn members_are_set_put_first_and_left_out() {
        let params = object(r#"{ "name" : "a", "x": {"name":1} , "_meta":{"k":2}}"#);
        let edits = [(Key::Name, Edit::Set(b"\"b\"")), (Key::Meta, Edit::Drop), (Key::Uri, Edit::Set(b"7"))];
        assert_eq!(params.with(&edits), r#"{"uri":7, "name" : "b", "x": {"name":1} }"#);
        assert_eq!(object("{}").with(&[(Key::Meta, Edit::Set(b"1"))]), r#"{"_meta":1}"#);
        assert_eq!(object(r#"{"_meta":1 }"#).with(&[(Key::Meta, Edit::Drop)]), "{}");
    }

    #[test]
    fn a_key_is_what_its_receiver_reads() {
        let params = object(r#"{"n\u0061me":"a","Name":"b"}"#);
        assert_eq!(params.text(Key::Name).as_deref(), Some("a"));
        assert!(object(r#"{"n\u0061me":"a","name":"b"}"#).is_ambiguous());
        assert!(!object(r#"{"name":"a","arguments":{"name":1,"name":2}}"#).is_ambiguous());
    }

    #[test]
    fn setting_knows_where_everything_stands() {
        for text in [
            r#"{"a":1, "name" : "x","arguments":{"k":[1]},"_meta":{} }"#,
            r#"{"_meta":{},"name":""}"#,
            r#"{"uri":"u"}"#,
            "{}",
        ] {
            for value in ["\"\"", "\"longer than it was\""] {
                let (set, walked) = (
                    object(text).set(Key::Name, value.as_bytes()),
                    object(text).with(&[(Key::Name, Edit::Set(value.as_bytes()))]),
                );
                assert_eq!(set.raw(), &walked);
                assert_eq!(set.known, Object::parse(walked).unwrap().known, "{text}");
            }
        }
    }

    proptest! {
        /// Against a model: a list of members, edited as a list.
        #[test]
        fn writing_is_editing_the_list(
            names in prop::sample::subsequence(vec!["name", "_meta", "z", "isError", "ttlMs", "q"], 0..=6).prop_shuffle(),
            drops in prop::collection::vec(0..3usize, 3),
            spaces in "[ \n]{0,2}",
        ) {
            let text = format!("{{{spaces}{}{spaces}}}", names.iter().map(|n| format!("\"{n}\"{spaces}:{spaces}[1]")).collect::<Vec<_>>().join(&format!("{spaces},{spaces}")));
            let keys = [(Key::Name, "name"), (Key::Meta, "_meta"), (Key::IsError, "isError")];
            let mut edits = Vec::new();
            let mut model: Vec<(String, String)> = names.iter().map(|n| (n.to_string(), "[1]".into())).collect();
            let mut first = Vec::new();
            for ((key, name), what) in keys.iter().zip(&drops) {
                match what {
                    0 => {}
                    1 => { edits.push((*key, Edit::Drop)); model.retain(|(n, _)| n != name); }
                    _ => {
                        edits.push((*key, Edit::Set(b"2")));
                        match model.iter_mut().find(|(n, _)| n == name) {
                            Some(member) => member.1 = "2".into(),
                            None => first.push((name.to_string(), "2".to_string())),
                        }
                    }
                }
            }
            first.extend(model);
            let written = object(&text).with(&edits);
            let seen: Vec<(String, String)> = Members::of(&written).unwrap().map(|m| m.unwrap()).map(|m| (
                String::from_utf8(written[m.start + 1..m.key_end - 1].to_vec()).unwrap(),
                String::from_utf8(written[m.value..m.end].to_vec()).unwrap(),
            )).collect();
            prop_assert_eq!(seen, first);
            prop_assert!(json::document(&written).is_ok(), "{:?}", written);
        }
    }
}
