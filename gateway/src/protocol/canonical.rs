//! One form of a JSON value, whatever the order of its keys and its spacing: what requests are compared by.

use super::json;
use sha2::{Digest, Sha256};

/// The members of a request that its retry changes.
const CHANGING: [&str; 3] = ["_meta", "inputResponses", "requestState"];

/// What a request asks for with its raw parameters, as a digest that its retry has too.
pub fn digest(params: &[u8]) -> [u8; 32] {
    let mut out = Vec::with_capacity(params.len());
    object(params, &CHANGING, &mut out);
    Sha256::digest(&out).into()
}

/// Writes a valid value in that form: keys in order, no white space, texts with as few escapes as can be, numbers as they
/// are written. Walks as deep as [`json::DEPTH_MAX`] allows values to be.
pub fn write(value: &[u8], out: &mut Vec<u8>) {
    match value.first() {
        Some(b'{') => object(value, &[], out),
        Some(b'[') => {
            out.push(b'[');
            for (at, place) in json::elements(value).unwrap_or_default().into_iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write(&value[place], out);
            }
            out.push(b']');
        }
        Some(b'"') => text(value, out),
        _ => out.extend_from_slice(value),
    }
}

fn object(raw: &[u8], without: &[&str], out: &mut Vec<u8>) {
    let mut members: Vec<_> = json::Members::of(raw).into_iter().flatten().flatten().collect();
    members.retain(|member| !member.key(raw).is_some_and(|key| without.iter().any(|one| one.as_bytes() == &*key)));
    // Stable: of a key that stands twice the second stays behind the first.
    members.sort_by_cached_key(|member| member.key(raw).map(|key| key.into_owned()));
    out.push(b'{');
    for (at, member) in members.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        text(&raw[member.start..member.key_end], out);
        out.push(b':');
        write(&raw[member.value..member.end], out);
    }
    out.push(b'}');
}

fn text(raw: &[u8], out: &mut Vec<u8>) {
    match json::unquote(raw) {
        Some(text) => out.extend_from_slice(json::quote(&text).as_bytes()),
        // A lone surrogate is no text: it stays as it is spelled.
        None => out.extend_from_slice(raw),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
            return out.push_str(&json::quote(text));
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
            prop_assert!(json::document(&form).is_ok());
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
}
