//! The laws of translation, on payloads that are made up: equal revisions change nothing, there and back keeps what both
//! have, and whatever comes in, JSON comes out.

use super::super::*;
use super::rig::{object, pairs};
use crate::json;
use proptest::prelude::*;

const METHODS: [Method; 6] = [
    Method::ToolsCall,
    Method::PromptsGet,
    Method::ResourcesRead,
    Method::Elicitation,
    Method::Sampling,
    Method::RootsList,
];

/// Names that mean something somewhere, and one that does not.
fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "content",
        "contents",
        "messages",
        "structuredContent",
        "_meta",
        "type",
        "text",
        "resource",
        "uri",
        "icons",
        "requestedSchema",
        "properties",
        "oneOf",
        "enum",
        "enumNames",
        "const",
        "title",
        "default",
        "mode",
        "task",
        "tools",
        "inputSchema",
        "outputSchema",
        "execution",
        "annotations",
        "roots",
        "arguments",
        "isError",
        "x",
        "resultType",
        "data",
        "mimeType",
        "role",
        "t\\u0079pe",
        "$schema",
        "elicitationId",
        "context",
        "message",
    ])
}

fn word() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "audio",
        "resource_link",
        "resource",
        "text",
        "image",
        "tool_result",
        "tool_use",
        "array",
        "object",
        "string",
        "boolean",
        "form",
        "url",
        "\\ud800",
        "\\\\",
        "complete",
        "ä",
    ])
    .prop_map(|word| format!("\"{word}\""))
}

fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        4 => word(),
        1 => Just("null".to_owned()),
        1 => Just("1e400".to_owned()),
        1 => Just("true".to_owned()),
    ];
    leaf.prop_recursive(6, 96, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|all| format!("[ {}]", all.join(" ,"))),
            members(inner),
        ]
    })
}

fn members(value: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    prop::collection::btree_map(name(), value, 0..6).prop_map(|all| {
        let written: Vec<_> = all.iter().map(|(name, value)| format!("\"{name}\" : {value}")).collect();
        format!("{{{} }}", written.join(", "))
    })
}

fn written(method: &Method, payload: &Object, from: Revision, to: Revision) -> Vec<u8> {
    let mut out = Vec::new();
    let told = result(method, payload, from, to);
    let payload = told.as_ref().unwrap_or(payload);
    write_result(method, payload, (from, to), b"{}", &mut out);
    assert!(
        out.len() + 128 <= payload.raw().len() + RESULT_ADDS,
        "there is room for it, and for what stands around it"
    );
    out
}

fn is_object(raw: &[u8]) -> bool {
    raw.starts_with(b"{") && json::document(raw).is_ok()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn equal_revisions_change_nothing(raw in members(value())) {
        let payload = object(&raw);
        for revision in Revision::ALL {
            for method in &METHODS {
                let (asked, told) = (question(method, &payload, revision, revision), answer(method, &payload, revision, revision));
                prop_assert_eq!(asked.as_ref().map(Object::raw), Some(payload.raw()));
                prop_assert_eq!(told.as_ref().map(Object::raw), Some(payload.raw()));
                prop_assert_eq!(params(method, &payload, revision, revision), None);
                if !revision.is_modern() {
                    prop_assert_eq!(written(method, &payload, revision, revision), payload.raw().to_vec());
                }
            }
            prop_assert_eq!(&*definition(payload.raw(), revision, revision), &payload.raw()[..]);
        }
    }

    #[test]
    fn whatever_comes_in_an_object_comes_out(raw in members(value())) {
        let payload = object(&raw);
        for (from, to) in pairs() {
            for method in &METHODS {
                prop_assert!(is_object(&written(method, &payload, from, to)));
                prop_assert!(params(method, &payload, from, to).is_none_or(|sent| is_object(sent.raw())));
                for told in [question(method, &payload, from, to), answer(method, &payload, from, to)].iter().flatten() {
                    prop_assert!(is_object(told.raw()));
                }
            }
            prop_assert!(is_object(&definition(payload.raw(), from, to)));
            prop_assert!(is_object(&capabilities(payload.raw(), to)));
        }
    }

    /// Whoever has been there and back once has only what both have, and keeps it.
    #[test]
    fn there_and_back_again_is_there_and_back(raw in members(value())) {
        for (a, b) in pairs() {
            for trip in trips() {
                let again = |raw: &str| trip(raw, a, b).and_then(|there| trip(&there, b, a));
                let Some(once) = again(&raw) else { continue };
                prop_assert_eq!(again(&once).map(|twice| sorted(&twice)), Some(sorted(&once)), "{} and {}", a, b);
            }
        }
    }

    /// A newer handshake revision has all that an older one has: nothing of it is lost there.
    #[test]
    fn what_the_older_has_survives_the_newer(raw in members(value())) {
        for (older, newer) in pairs().filter(|(older, newer)| older < newer && !newer.is_modern()) {
            for trip in trips() {
                let Some(plain) = trip(&raw, Revision::NEWEST_LEGACY, older) else { continue };
                let back = trip(&plain, older, newer).and_then(|there| trip(&there, newer, older));
                prop_assert_eq!(back.map(|back| sorted(&back)), Some(sorted(&plain)), "{} and {}", older, newer);
            }
        }
    }
}

type Trip = Box<dyn Fn(&str, Revision, Revision) -> Option<String>>;

/// Every kind of payload, translated.
fn trips() -> Vec<Trip> {
    let text = |raw: &[u8]| String::from_utf8(raw.to_vec()).unwrap();
    let mut all: Vec<Trip> = vec![Box::new(move |raw, from, to| Some(text(&definition(raw.as_bytes(), from, to))))];
    for method in METHODS {
        let (one, other) = (method.clone(), method.clone());
        all.push(Box::new(move |raw, from, to| Some(text(&written(&method, &object(raw), from, to)))));
        all.push(Box::new(move |raw, from, to| Some(text(question(&one, &object(raw), from, to)?.raw()))));
        all.push(Box::new(move |raw, from, to| Some(text(answer(&other, &object(raw), from, to)?.raw()))));
    }
    all
}

/// The text with the members of its objects in order.
fn sorted(raw: &str) -> String {
    let bytes = raw.as_bytes();
    if raw.starts_with('{') {
        let members = json::Members::of(bytes).unwrap().map(Result::unwrap);
        let mut all: Vec<_> =
            members.map(|m| format!("{}:{}", &raw[m.start..m.key_end], sorted(&raw[m.value..m.end]))).collect();
        all.sort();
        return format!("{{{}}}", all.join(","));
    }
    if raw.starts_with('[') {
        let all: Vec<_> = json::elements(bytes).unwrap().into_iter().map(|place| sorted(&raw[place])).collect();
        return format!("[{}]", all.join(","));
    }
    raw.to_owned()
}
