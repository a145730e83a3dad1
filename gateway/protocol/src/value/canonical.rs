//! One form of a JSON value, whatever the order of its keys and its spacing: what requests are compared by.
//!
//! The cost is linear in the value, however deep it is: one walk finds the objects whose keys are out of order, a second one writes.

use crate::json;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Range;

/// The members of a request that its retry changes.
const CHANGING: [&str; 3] = ["_meta", "inputResponses", "requestState"];
/// Members of a definition that no model is told, or that may be made anew for each list.
const BESIDE: [&str; 2] = ["_meta", "icons"];
/// So much is collected before it is hashed.
const BUFFER: usize = 8 * 1024;

/// What a request asks for with its raw parameters, as a digest that its retry has too.
pub fn digest(params: &[u8]) -> [u8; 32] {
    digest_without(params, &CHANGING)
}

/// What a tool is by its definition, as a digest; beside that member, where one is named.
pub fn definition(definition: &[u8], without: Option<&str>) -> [u8; 32] {
    digest_without(definition, &BESIDE.into_iter().chain(without).collect::<Vec<_>>())
}

fn digest_without(value: &[u8], without: &[&str]) -> [u8; 32] {
    let mut out = Hashed { buffer: Vec::with_capacity(BUFFER.min(value.len() + 64)), digest: Sha256::new() };
    write_to(value, without, &mut out);
    out.digest.update(&out.buffer);
    out.digest.finalize().into()
}

/// Writes a valid value in that form: keys in order, no white space, texts with as few escapes as can be, numbers as they
/// are written. Walks as deep as a member of a value that [`json::DEPTH_MAX`] bounds can be.
pub fn write(value: &[u8], out: &mut Vec<u8>) {
    write_to(value, &[], out);
}

/// Where the form is written to.
trait Sink {
    fn put(&mut self, bytes: &[u8]);
}

impl Sink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Hashes what is written.
struct Hashed {
    buffer: Vec<u8>,
    digest: Sha256,
}

impl Sink for Hashed {
    fn put(&mut self, bytes: &[u8]) {
        if self.buffer.len() + bytes.len() > BUFFER {
            self.digest.update(&self.buffer);
            self.buffer.clear();
        }
        match bytes.len() < BUFFER {
            true => self.buffer.extend_from_slice(bytes),
            false => self.digest.update(bytes),
        }
    }
}

/// Writes a value without some of its own members. What is not valid stays as it is.
fn write_to(value: &[u8], without: &[&str], out: &mut impl Sink) {
    let mut order = Order { without, ..Order::default() };
    let ended = u32::try_from(value.len()).ok().and_then(|_| order.find(value, 0, 0));
    debug_assert!(ended.is_some(), "only valid values are written");
    let Some(_) = ended else { return out.put(value) };
    // An object is noted when it ends: behind those inside it.
    order.objects.sort_unstable_by_key(|object| object.start);
    Writer { raw: value, order, out }.value(0);
}

/// The objects whose members are not written as they stand.
#[derive(Default)]
struct Order<'a> {
    objects: Vec<Reordered>,
    /// Where the keys of all of them stand, each object's in the order in which they are written.
    keys: Vec<u32>,
    /// The keys that were met in objects that are open, the outermost first.
    met: Vec<u32>,
    /// Members of the outermost object that are left out.
    without: &'a [&'a str],
}

/// One such object.
struct Reordered {
    start: u32,
    end: u32,
    /// Which of the keys are its.
    keys: Range<u32>,
}

impl Order<'_> {
    /// Walks the value at `at` and returns where it ends; `None` where it is not valid.
    fn find(&mut self, raw: &[u8], at: usize, depth: u32) -> Option<usize> {
        match raw.get(at)? {
            b'{' if depth <= json::DEPTH_MAX => self.object(raw, at, depth),
            b'[' if depth <= json::DEPTH_MAX => {
                let mut at = json::space(raw, at + 1);
                if raw.get(at) == Some(&b']') {
                    return Some(at + 1);
                }
                loop {
                    at = json::space(raw, self.find(raw, at, depth + 1)?);
                    match raw.get(at)? {
                        b',' => at = json::space(raw, at + 1),
                        b']' => return Some(at + 1),
                        _ => return None,
                    }
                }
            }
            b'{' | b'[' => None,
            _ => json::value(raw, at).ok(),
        }
    }

    fn object(&mut self, raw: &[u8], start: usize, depth: u32) -> Option<usize> {
        let before = self.met.len();
        let mut as_it_stands = true;
        let mut members = json::Members::at(raw, start).ok()?;
        while let Some(member) = members.next_key().ok()? {
            let is_left_out = depth == 0
                && !self.without.is_empty()
                && member.key(raw).is_some_and(|key| self.without.iter().any(|one| one.as_bytes() == &*key));
            if is_left_out {
                as_it_stands = false;
            } else {
                let last = self.met.get(before..).and_then(|met| met.last());
                as_it_stands &= last.is_none_or(|last| compare(raw, *last, member.start as u32).is_le());
                self.met.push(member.start as u32);
            }
            let end = self.find(raw, member.value, depth + 1)?;
            members.resume(end);
        }
        let end = members.end();
        if !as_it_stands {
            let theirs = &mut self.met[before..];
            // Stable: of a key that stands twice the second stays behind the first.
            theirs.sort_by(|one, other| compare(raw, *one, *other));
            let from = self.keys.len() as u32;
            self.keys.extend_from_slice(theirs);
            let keys = from..self.keys.len() as u32;
            self.objects.push(Reordered { start: start as u32, end: end as u32, keys });
        }
        self.met.truncate(before);
        Some(end)
    }
}

/// Compares the keys that stand at two places, as their receiver reads them.
fn compare(raw: &[u8], one: u32, other: u32) -> Ordering {
    let (one, other) = (key(raw, one as usize), key(raw, other as usize));
    one.cmp(&other)
}

/// The text of the key at a place; `None` where it is no text.
fn key(raw: &[u8], start: usize) -> Option<Cow<'_, str>> {
    json::unquote(&raw[start..json::value(raw, start).ok()?])
}

/// Writes a value that is known to be valid.
struct Writer<'a, S> {
    raw: &'a [u8],
    order: Order<'a>,
    out: &'a mut S,
}

impl<S: Sink> Writer<'_, S> {
    /// Writes the value at `at` and returns where it ends.
    fn value(&mut self, at: usize) -> usize {
        match self.raw[at] {
            b'{' => self.object(at),
            b'[' => {
                self.out.put(b"[");
                let mut at = json::space(self.raw, at + 1);
                while self.raw[at] != b']' {
                    at = json::space(self.raw, self.value(at));
                    if self.raw[at] == b',' {
                        self.out.put(b",");
                        at = json::space(self.raw, at + 1);
                    }
                }
                self.out.put(b"]");
                at + 1
            }
            _ => self.single(at),
        }
    }

    fn object(&mut self, start: usize) -> usize {
        self.out.put(b"{");
        let found = self.order.objects.binary_search_by_key(&(start as u32), |object| object.start);
        let end = match found {
            Ok(found) => {
                let Reordered { keys, end, .. } = &self.order.objects[found];
                let (keys, end) = (keys.clone(), *end as usize);
                for at in keys.clone() {
                    if at > keys.start {
                        self.out.put(b",");
                    }
                    self.member(self.order.keys[at as usize] as usize);
                }
                end
            }
            Err(_) => {
                let mut at = json::space(self.raw, start + 1);
                while self.raw[at] != b'}' {
                    at = json::space(self.raw, self.member(at));
                    if self.raw[at] == b',' {
                        self.out.put(b",");
                        at = json::space(self.raw, at + 1);
                    }
                }
                at + 1
            }
        };
        self.out.put(b"}");
        end
    }

    /// Writes the member whose key stands at `at` and returns where its value ends.
    fn member(&mut self, at: usize) -> usize {
        let colon = json::space(self.raw, self.single(at));
        self.out.put(b":");
        self.value(json::space(self.raw, colon + 1))
    }

    /// Writes a value that holds no others.
    fn single(&mut self, at: usize) -> usize {
        let end = json::value(self.raw, at).unwrap_or(self.raw.len());
        let raw = &self.raw[at..end];
        match json::unquote(raw).filter(|_| raw.contains(&b'\\')) {
            Some(text) => self.out.put(json::quote(&text).as_bytes()),
            // Without an escape it has its form already; a lone surrogate is no text, and stays as it is spelled.
            None => self.out.put(raw),
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// A value apart from how it is spelled.
    #[derive(Debug, Clone, PartialEq)]
    enum Value {
        Plain(String),
        Text(String),
        List(Vec<Value>),
        Table(BTreeMap<String, Value>),
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            "null|true|false|-?(0|[1-9][0-9]{0,3})(\\.[0-9]{1,2})?([eE][+-]?[0-9])?".prop_map(Value::Plain),
            "\\PC{0,4}|[\u{0}-\u{7f}]{0,3}".prop_map(Value::Text),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::List),
                prop::collection::btree_map("[ab\"\\\\é]{0,2}", inner, 0..4).prop_map(Value::Table),
            ]
        })
    }

    /// Spells it, with these choices where there is a choice.
    fn spell(value: &Value, choices: &mut impl Iterator<Item = u8>, out: &mut String) {
        let mut space =
            |out: &mut String| out.push_str(["", " ", "\n\t", ""][choices.next().unwrap_or(0) as usize % 4]);
        space(out);
        match value {
            Value::Plain(text) => out.push_str(text),
            Value::Text(text) => spell_text(text, choices, out),
            Value::List(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    spell(item, choices, out);
                }
                out.push(']');
            }
            Value::Table(members) => {
                let mut members: Vec<_> = members.iter().collect();
                if choices.next().unwrap_or(0) % 2 == 1 {
                    members.reverse();
                }
                out.push('{');
                for (at, (key, item)) in members.into_iter().enumerate() {
                    out.push_str(if at > 0 { " ," } else { "" });
                    spell_text(key, choices, out);
                    out.push(':');
                    spell(item, choices, out);
                }
                out.push('}');
            }
        }
    }

    fn spell_text(text: &str, choices: &mut impl Iterator<Item = u8>, out: &mut String) {
        if choices.next().unwrap_or(0).is_multiple_of(2) {
            return out.push_str(&crate::json::quote(text));
        }
        out.push('"');
        text.encode_utf16().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        out.push('"');
    }

    fn spelled(value: &Value, choices: &[u8]) -> Vec<u8> {
        let mut text = String::new();
        spell(value, &mut choices.iter().copied(), &mut text);
        text.trim().as_bytes().to_vec()
    }

    fn canonical(raw: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        write(raw, &mut out);
        out
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

        #[test]
        fn one_value_has_one_form(value in value(), one: Vec<u8>, other: Vec<u8>) {
            let form = canonical(&spelled(&value, &one));
            prop_assert_eq!(&form, &canonical(&spelled(&value, &other)));
            prop_assert_eq!(&form, &canonical(&form));
            prop_assert!(crate::json::document(&form).is_ok());
        }

        #[test]
        fn two_values_have_two(one in value(), other in value(), choices: Vec<u8>) {
            let forms = (canonical(&spelled(&one, &choices)), canonical(&spelled(&other, &[])));
            prop_assert_eq!(one == other, forms.0 == forms.1);
        }
    }

    #[test]
    fn a_retry_asks_for_the_same_and_other_arguments_for_something_else() {
        let of = |text: &str| digest(text.as_bytes());
        let first = of(r#"{"name":"t","arguments":{"a":1,"b":[{"c":"é"}]},"_meta":{"x":1}}"#);
        let retry =
            r#"{ "requestState":"s","arguments" : {"b":[ {"c":"\u00e9"}],"a":1},"inputResponses":{},"name":"t"}"#;
        assert_eq!(first, of(retry));
        for other in [
            r#"{"name":"t","arguments":{"a":1.0,"b":[{"c":"é"}]}}"#,
            r#"{"name":"u","arguments":{"a":1,"b":[{"c":"é"}]}}"#,
            r#"{"name":"t","arguments":{"a":1,"b":[{"c":"é","_meta":{}}]}}"#,
            r#"{"name":"t","arguments":{"a":1,"a":2,"b":[{"c":"é"}]}}"#,
        ] {
            assert_ne!(first, of(other), "{other}");
        }
        assert_ne!(of(r#"{"a":1,"a":2}"#), of(r#"{"a":2,"a":1}"#));
        assert_eq!(canonical(br#""\ud800""#), br#""\ud800""#);
    }

    #[test]
    fn the_form_costs_as_much_again_for_twice_the_size_the_depth_or_the_members() {
        let deep = |depth: usize, bytes: usize| {
            let (open, close) = ("{\"b\":1,\"a\":[".repeat(depth), "]}".repeat(depth));
            format!("{open}\"{}\"{close}", "x".repeat(bytes))
        };
        let wide = |members: usize| {
            let members: Vec<_> = (0..members).rev().map(|at| format!("\"k{at:06}\":[{at},{{}}]")).collect();
            format!("{{{}}}", members.join(","))
        };
        let cost = |text: &str| steps::of(|| _ = digest(text.as_bytes())).unwrap() as f64;
        for (one, two) in [
            (deep(60, 20_000), deep(60, 40_000)),
            (deep(30, 20_000), deep(60, 40_000)),
            (deep(2, 0), deep(4, 0)),
            (wide(2_000), wide(4_000)),
        ] {
            let ratio = cost(&two) / cost(&one);
            assert!(ratio < 2.6, "{} bytes, then {}: {ratio} times the steps", one.len(), two.len());
        }
    }

    #[test]
    fn a_value_as_deep_as_can_be_has_its_form() {
        let depth = crate::json::DEPTH_MAX as usize;
        let text = format!("{{\"b\":{}1{},\"a\":0}}", "[".repeat(depth), "]".repeat(depth));
        let form = String::from_utf8(canonical(text.as_bytes())).unwrap();
        assert!(form.starts_with("{\"a\":0,\"b\":[[") && form.len() == text.len());
    }
}
