//! The arguments of a call, as a person types them.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::config::fault::printable;
use crate::config::import::unclosed;
use crate::protocol::json::{Members, elements};

/// One JSON object, or pairs `key=value`. A value is taken for JSON where the tool does not ask for a text. JSON stays as it is written: a
/// number that no machine has room for is sent whole.
pub(super) fn arguments(given: &[String], properties: &Value) -> Result<Box<RawValue>, String> {
    match given {
        [one] if one.trim_start().starts_with('{') => return object(one),
        [first, _, ..] if first.trim_start().starts_with('{') => {
            return Err(format!("the shell has made several arguments of one object; {EXAMPLE}"));
        }
        _ => {}
    }
    let mut found: BTreeMap<&str, Box<RawValue>> = BTreeMap::new();
    for pair in given {
        let (key, value) =
            pair.split_once('=').ok_or_else(|| format!("expected key=value or one JSON object, not `{pair}`"))?;
        if key.is_empty() {
            return Err(format!("`{pair}` has no key: write key=value"));
        }
        let json =
            if takes_text(&properties[key], value) { None } else { RawValue::from_string(in_one_line(value)).ok() };
        if let Some(key) = json.as_ref().and_then(|json| doubled(json.get().as_bytes())) {
            return Err(twice(&key));
        }
        let value = json.map_or_else(|| to_raw_value(value), Ok).map_err(|error| error.to_string())?;
        if found.insert(key, value).is_some() {
            return Err(twice(key));
        }
    }
    to_raw_value(&found).map_err(|error| error.to_string())
}

/// JSON without ends of lines, which end a message; in a text of it none may stand.
fn in_one_line(json: &str) -> String {
    json.replace(['\r', '\n'], " ")
}

fn twice(key: &str) -> String {
    format!("`{}` is given twice", printable(key))
}

/// A key that stands twice in one object of a well written value: a server takes the one, and who reads it the other.
fn doubled(json: &[u8]) -> Option<String> {
    let items = match json.first()? {
        b'{' => {
            let (mut seen, mut values) = (HashSet::new(), Vec::new());
            for member in Members::of(json).ok()? {
                let member = member.ok()?;
                let key = member.key(json)?;
                if !seen.insert(key.clone()) {
                    return Some(String::from_utf8_lossy(&key).into_owned());
                }
                values.push(member.value..member.end);
            }
            values
        }
        b'[' => elements(json).ok()?,
        _ => return None,
    };
    items.into_iter().find_map(|item| doubled(&json[item]))
}

/// What a person types in place of what is no object.
const EXAMPLE: &str = "write key=value, or one object in single quotes: '{\"key\": \"value\"}'";

/// One JSON object; or what is wrong with it, and how it is written.
fn object(text: &str) -> Result<Box<RawValue>, String> {
    let object = RawValue::from_string(in_one_line(text)).map_err(|error| unread(text, &error))?;
    doubled(object.get().as_bytes()).map_or(Ok(object), |key| Err(twice(&key)))
}

fn unread(text: &str, error: &serde_json::Error) -> String {
    // It was read as one line of the same length.
    let near = error.column().saturating_sub(1).min(text.len());
    let at = (0..=near).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    let around = |part: &str| text[..at].ends_with(part) || text[at..].starts_with(part);
    let said = error.to_string();
    let why = match () {
        () if error.is_eof() => match unclosed(text) {
            Some(closing) => format!("a `{closing}` is missing at the end"),
            None => "it ends too early".to_owned(),
        },
        () if text.contains(['\u{201c}', '\u{201d}']) => "it has curly quotes in place of straight ones".to_owned(),
        () if around("'") => "it has single quotes in place of double ones".to_owned(),
        () if said.starts_with("trailing characters") => "it goes on behind its end".to_owned(),
        () if !text.contains('"') => "names and texts need double quotes in it".to_owned(),
        () => {
            let (number, found) = (text[..at].chars().count() + 1, text[at..].chars().next().unwrap_or(' '));
            format!("character {number}, `{}`, is not expected there", printable(&found.to_string()))
        }
    };
    format!("the argument is not a JSON object: {why}; {EXAMPLE}")
}

/// Whether a tool takes the value as it is typed: it asks for a text, alone or beside null, or lists the text among its values.
fn takes_text(schema: &Value, value: &str) -> bool {
    let is_kind = |kind: &Value| kind == "string";
    let is_text_or_null = |kinds: &Vec<Value>| {
        kinds.iter().any(is_kind) && kinds.iter().all(|kind| is_kind(kind) || kind == "null") && value != "null"
    };
    let is_listed = |all: &Vec<Value>| all.iter().any(|one| one == value);
    is_kind(&schema["type"])
        || schema["type"].as_array().is_some_and(is_text_or_null)
        || schema["enum"].as_array().is_some_and(is_listed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The arguments as they are understood.
    fn read(given: &[&str], properties: &Value) -> Result<Value, String> {
        let given: Vec<String> = given.iter().map(|one| (*one).to_owned()).collect();
        arguments(&given, properties).map(|read| serde_json::from_str(read.get()).unwrap())
    }

    #[test]
    fn values_are_what_the_tool_asks_for() {
        let properties = json!({ "id": { "type": "string" }, "count": { "type": "integer" } });
        let of = |given: &[&str]| read(given, &properties);
        assert_eq!(
            of(&["id=1", "count=2", "more=x y", "list=[1]"]),
            Ok(json!({ "id": "1", "count": 2, "more": "x y", "list": [1] }))
        );
        assert_eq!(of(&["{\"a\": 1}"]), Ok(json!({ "a": 1 })));
        assert_eq!(of(&[]), Ok(json!({})));
        assert!(of(&["x"]).is_err() && of(&["{x"]).is_err());
        assert!(of(&["a=1", "a=2"]).is_err_and(|why| why == "`a` is given twice") && of(&["=1"]).is_err());
        for (given, why) in [
            (&["{\"a\":"][..], "a `}` is missing at the end"),
            (&["{\"a\": \"x"], "a `\"` is missing at the end"),
            (&["{\"a\": [1"], "a `]` is missing at the end"),
            (&["{a: 1}"], "names and texts need double quotes in it"),
            (&["{'a': 1}"], "it has single quotes in place of double ones"),
            (&["{\u{201c}a\u{201d}: 1}"], "it has curly quotes in place of straight ones"),
            (&["{\"a\": 1}}"], "it goes on behind its end"),
            (&["{\"a\": x}"], "character 7, `x`, is not expected there"),
            (&["{\"é\": x}"], "character 7, `x`, is not expected there"),
            (&["{\"a\": 1,\n\"b\": x}"], "character 15, `x`, is not expected there"),
        ] {
            assert_eq!(of(given), Err(format!("the argument is not a JSON object: {why}; {EXAMPLE}")), "{given:?}");
        }
        let split = format!("the shell has made several arguments of one object; {EXAMPLE}");
        assert_eq!(of(&["{a:", "1}"]), Err(split));
        let properties = json!({ "a": { "type": ["string", "null"] }, "b": { "enum": ["1", 2] }, "c": { "type": ["string", "integer"] } });
        assert_eq!(read(&["a=5", "b=1", "c=5"], &properties), Ok(json!({ "a": "5", "b": "1", "c": 5 })));
        assert_eq!(read(&["a=null", "b=2"], &properties), Ok(json!({ "a": null, "b": 2 })));
    }

    #[test]
    fn what_is_written_is_sent_as_it_is_written_and_a_key_that_stands_twice_is_refused() {
        let of = |given: &[&str]| {
            let given: Vec<String> = given.iter().map(|one| (*one).to_owned()).collect();
            arguments(&given, &Value::Null).map(|read| read.get().to_owned())
        };
        let big = "123456789012345678901234567890";
        for (given, sent) in [
            (
                &[&*format!("{{\"n\": {big}, \"x\": 1e999, \"v\": 1.10}}")][..],
                format!("{{\"n\": {big}, \"x\": 1e999, \"v\": 1.10}}"),
            ),
            (&[&*format!("n={big}"), "v=1.10", "x=1e999"], format!("{{\"n\":{big},\"v\":1.10,\"x\":1e999}}")),
            // An end of line would end the message.
            (&["{\"a\":\n1,\r\n\"b\": 2}"], "{\"a\": 1,  \"b\": 2}".to_owned()),
            (&["a={\"b\":\n1}"], "{\"a\":{\"b\": 1}}".to_owned()),
            (&[&*format!("list=[{big}]"), "b=01"], format!("{{\"b\":\"01\",\"list\":[{big}]}}")),
        ] {
            assert_eq!(of(given), Ok(sent), "{given:?}");
        }
        for given in
            ["{\"a\": 1, \"b\": 2, \"a\": 1}", "{\"b\": [{\"a\": 1, \"\\u0061\": 2}]}", "b={\"a\": 1, \"a\": 2}"]
        {
            assert_eq!(of(&[given]), Err("`a` is given twice".to_owned()), "{given}");
        }
    }
}
