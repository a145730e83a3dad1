//! JSON values: their one form, objects that are written anew, `_meta`, headers, and payloads in the words of other revisions.

use super::target::{Shape, Target, WORDS};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use serde_json::Value;
use trunkline::fuzzing::steps;
use trunkline::protocol::frame::Method;
use trunkline::protocol::frame::message::Frame;
use trunkline::protocol::http::headers;
use trunkline::protocol::http::param_headers::ParamHeaders;
use trunkline::protocol::json;
use trunkline::protocol::meta;
use trunkline::protocol::revision::Revision;
use trunkline::protocol::translate;
use trunkline::protocol::value::Edit;
use trunkline::protocol::value::Key;
use trunkline::protocol::value::Object;
use trunkline::protocol::value::canonical;

pub(super) const TARGETS: &[Target] = &[
    Target { name: "canonical", body: canonical_form, words: WORDS },
    Target { name: "objects", body: objects, words: WORDS },
    Target { name: "meta", body: metas, words: WORDS },
    Target { name: "headers", body: header_values, words: &["=?base64?", "?=", "=?BASE64?", "w6Q="] },
    Target { name: "param_headers", body: param_headers, words: PARAM_WORDS },
    Target { name: "translate", body: translated, words: TRANSLATE_WORDS },
];

const PARAM_WORDS: &[&str] = &[
    "\"x-mcp-header\":\"A\"",
    "\"properties\":{",
    "\"type\":\"string\"",
    "\"type\":\"integer\"",
    "\0",
    "42.0",
    "-9223372036854775808",
    "1e300",
];

const TRANSLATE_WORDS: &[&str] = &[
    "\"type\":\"audio\"",
    "\"type\":\"resource_link\"",
    "\"type\":\"resource\",\"resource\":{\"uri\":\"a:\"}",
    "\"requestedSchema\":{\"properties\":{",
    "\"enum\":[\"a\"],\"enumNames\":[\"b\"]",
    "\"oneOf\":[{\"const\":\"a\",\"title\":\"b\"}]",
    "\"mode\":\"url\"",
    "\"messages\":[{\"role\":\"user\",\"content\":",
    "\"structuredContent\":[",
    "\"icons\":[]",
    "\"annotations\":{}",
    "\"execution\":{\"taskSupport\":\"required\"}",
    "\"content\":[{",
];

/// The steps of work on an input stay within its length times this, whatever it is.
fn within(times: u64, input: &[u8], work: impl FnOnce()) {
    let most = times * (input.len() as u64 + 64);
    if let Some(steps) = steps::of(work) {
        assert!(steps <= most, "{steps} steps for {} bytes", input.len());
    }
}

/// A value and its one form are equal to others, and the form is its own.
fn canonical_form(input: &[u8]) -> Shape {
    let Ok(place) = json::document(input) else {
        assert!(serde_json::from_slice::<Value>(input).is_err(), "refused, and a value for others");
        return Shape::of(0);
    };
    let value = &input[place];
    let (mut form, mut again) = (Vec::new(), Vec::new());
    within(64, value, || canonical::write(value, &mut form));
    assert!(json::document(&form).is_ok(), "the form is no JSON");
    canonical::write(&form, &mut again);
    assert_eq!(form, again, "the form has another form");
    if let (Ok(one), Ok(other)) = (serde_json::from_slice::<Value>(value), serde_json::from_slice::<Value>(&form)) {
        assert_eq!(one, other, "the form is another value");
    }
    let _ = canonical::digest(value);
    Shape::of((value[0], form.len() == value.len(), form.len().checked_ilog2()))
}

/// What becomes of members is what was asked for, and the rest stays.
fn objects(input: &[u8]) -> Shape {
    const KEYS: [(Key, &str); 3] = [(Key::Name, "name"), (Key::Meta, "_meta"), (Key::Arguments, "arguments")];
    let (first, rest) = input.split_first().unwrap_or((&0, &[]));
    let Ok(object) = Object::parse(Bytes::copy_from_slice(rest)) else { return Shape::of(0) };
    if object.doubled().is_some() {
        return Shape::of(1);
    }
    let mut edits = Vec::new();
    for (at, (key, _)) in KEYS.iter().enumerate() {
        match first >> (2 * at) & 3 {
            1 => edits.push((*key, Edit::Drop)),
            2 => edits.push((*key, Edit::Set(b"[7]"))),
            _ => {}
        }
    }
    let written = Object::parse(object.with(&edits)).expect("an object is written");
    let (before, after) = (json_members(object.raw()), json_members(written.raw()));
    let (Some(mut before), Some(after)) = (before, after) else { return Shape::of(2) };
    for (key, edit) in &edits {
        let name = KEYS.iter().find(|(known, _)| known == key).expect("it is one of them").1;
        match edit {
            Edit::Drop => _ = before.remove(name),
            Edit::Set(value) => {
                _ = before.insert(name.to_owned(), serde_json::from_slice(value).expect("it is a value"))
            }
        }
    }
    assert_eq!(before, after, "another object was written");
    let set = object.clone().set(Key::Name, b"\"set\"");
    assert_eq!(set.get(Key::Name), Some(&b"\"set\""[..]));
    assert_eq!(set.raw(), &object.with(&[(Key::Name, Edit::Set(b"\"set\""))]));
    assert_eq!(set.get(Key::Meta), object.get(Key::Meta));
    Shape::of((edits.len(), before.len().min(6)))
}

/// An object may lie one level deeper than any other value: its members are as deep as values can be.
pub(super) fn is_object(text: &[u8]) -> bool {
    Object::parse(Bytes::copy_from_slice(text)).is_ok()
}

fn json_members(raw: &[u8]) -> Option<serde_json::Map<String, Value>> {
    serde_json::from_slice(raw).ok()
}

/// What is not of one hop survives.
fn metas(input: &[u8]) -> Shape {
    let raw = Bytes::copy_from_slice(input);
    let Ok(object) = Object::parse(raw) else { return Shape::of(0) };
    let Ok(read) = meta::Meta::parse(object.raw()) else { return Shape::of(1) };
    let written = meta::write(None, Some(b"7"), &read.rest);
    let Ok(again) = meta::Meta::parse(&written.clone().into()) else { panic!("what is passed on cannot be read") };
    assert_eq!((again.rest.as_ref(), again.progress_token.as_deref()), (read.rest.as_ref(), Some(&b"7"[..])));
    assert!(is_object(&written));
    let _ = (read.token_is_sound(), meta::subscription(&object));
    Shape::of((read.revision.is_some(), read.capabilities.is_some(), read.rest.len().checked_ilog2()))
}

/// A text in a header is that text again, and headers that were made for a frame agree with it.
fn header_values(input: &[u8]) -> Shape {
    let text = String::from_utf8_lossy(input);
    let value = headers::encode(&text);
    assert_eq!(headers::decode(&value).as_deref(), Some(&*text));
    let seen = HeaderValue::from_bytes(input).ok().and_then(|value| headers::decode(&value));
    if let Ok(Frame::Request { method, params, .. }) = Frame::parse(&Bytes::copy_from_slice(input)) {
        let mut made = HeaderMap::new();
        made.insert(headers::MCP_METHOD, headers::method(&method));
        made.insert(headers::MCP_PROTOCOL_VERSION, HeaderValue::from_static("2026-07-28"));
        if let Some(name) = headers::name_of(&method, &params) {
            made.insert(headers::MCP_NAME, headers::encode(&name));
        }
        let mut told = headers::Mcp::default();
        made.get(headers::MCP_PROTOCOL_VERSION).into_iter().for_each(|value| told.version.note(value));
        made.get(headers::MCP_METHOD).into_iter().for_each(|value| told.method.note(value));
        made.get(headers::MCP_NAME).into_iter().for_each(|value| told.name.note(value));
        assert_eq!(headers::check(&told, &method, &params, "2026-07-28"), Ok(()));
    }
    Shape::of((value.as_bytes().starts_with(b"=?base64?"), seen.is_some()))
}

/// A schema, a zero byte, arguments: the headers that are made agree with what they are made of.
fn param_headers(input: &[u8]) -> Shape {
    let mut parts = input.splitn(2, |byte| *byte == 0);
    let (schema, arguments) = (parts.next().unwrap_or_default(), parts.next().unwrap_or(b"{}"));
    let (Ok(_), Ok(_)) = (json::document(schema), json::document(arguments)) else { return Shape::of(0) };
    let mut compiled = Ok(None);
    within(64, schema, || compiled = ParamHeaders::compile(schema));
    let found = match compiled {
        Err(why) => return Shape::of_text(&why),
        Ok(None) => return Shape::of(1),
        Ok(Some(found)) => found,
    };
    let made = found.make(Some(arguments));
    assert!(made.len() <= 64);
    within(64, arguments, || {
        if found.check(Some(arguments), None).is_ok() {
            assert_eq!(found.check(Some(arguments), Some(&made)), Ok(()), "our own headers are refused");
        }
    });
    let mut all = HeaderMap::new();
    made.iter().for_each(|(name, value)| _ = all.append(name, value.clone()));
    Shape::of((2, made.len()))
}

const METHODS: [Method; 8] = [
    Method::ToolsCall,
    Method::PromptsGet,
    Method::ResourcesRead,
    Method::Elicitation,
    Method::Sampling,
    Method::RootsList,
    Method::TasksGet,
    Method::Complete,
];

/// A payload in the words of another revision is JSON, and in those of its own the same.
fn translated(input: &[u8]) -> Shape {
    let [pair, which, rest @ ..] = input else { return Shape::of(0) };
    let Ok(object) = Object::parse(Bytes::copy_from_slice(rest)) else { return Shape::of(0) };
    let all = Revision::ALL;
    let (from, to) = (all[usize::from(pair % 5)], all[usize::from(pair / 5 % 5)]);
    let method = &METHODS[usize::from(which % 8)];
    let question = translate::question(method, &object, from, to);
    let answer = translate::answer(method, &object, from, to);
    let params = translate::params(method, &object, from, to);
    let definition = translate::definition(object.raw(), from, to);
    let told = translate::result(method, &object, from, to);
    let told = told.as_ref().unwrap_or(&object);
    let mut result = Vec::new();
    translate::write_result(method, told, (from, to), b"{\"name\":\"g\"}", &mut result);
    assert!(result.len() <= told.raw().len() + translate::RESULT_ADDS, "it has no room");
    for text in [&definition[..], &result] {
        assert!(is_object(text), "no JSON: {}", String::from_utf8_lossy(text));
    }
    if from == to {
        let all = [question.as_ref(), answer.as_ref()];
        assert!(
            params.is_none() && all.into_iter().all(|one| one == Some(&object)) && definition[..] == object.raw()[..]
        );
    }
    let changed = question.as_ref().map(|told| told != &object);
    Shape::of((
        which % 8,
        from,
        to,
        changed,
        answer.map(|told| told != object),
        params.is_some_and(|sent| sent != object),
    ))
}
