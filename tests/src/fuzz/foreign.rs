//! What else upstreams and clients say: texts for people, pauses, cut answers, chunks of results, questions, hosts and origins.

use super::target::{Shape, Target, WORDS};
use super::values::is_object;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use trunkline::call::ListenFilter;
use trunkline::fuzzing::downstream;
use trunkline::fuzzing::upstream;
use trunkline::protocol::capabilities::beyond::Declared;
use trunkline::protocol::frame::Method;
use trunkline::protocol::frame::message::Frame;
use trunkline::protocol::json;
use trunkline::protocol::payload::input;
use trunkline::protocol::revision::Revision;
use trunkline::protocol::value::Object;

pub(super) const TARGETS: &[Target] = &[
    Target { name: "texts", body: texts, words: &["\u{1b}[31m", "\u{202e}", "\u{7f}", "\u{9b}"] },
    Target {
        name: "pauses",
        body: pauses,
        words: &["Wed, 21 Oct 2015 07:28:00 GMT", "120", "Sunday, 06-Nov-94 08:49:37 GMT", "-1", "0"],
    },
    Target { name: "cut_answers", body: cut_answers, words: WORDS },
    Target { name: "questions", body: questions, words: WORDS },
    Target {
        name: "chunks",
        body: chunks,
        words: &["\"streamId\":\"s\"", "\"chunk\":{", "\"final\":true", "\"content\":", "\"text\":\"x\""],
    },
    Target {
        name: "hosts",
        body: hosts,
        words: &["localhost", "127.0.0.1", "[::1]", ":8080", "http://", "https://", "null", "evil.example", "\n"],
    },
];

fn texts(input: &[u8]) -> Shape {
    let shown = upstream::printable(&String::from_utf8_lossy(input));
    assert!(shown.chars().all(|char| !char.is_control() || char == '\t'), "{shown:?}");
    Shape::of(shown.len().checked_ilog2())
}

fn pauses(input: &[u8]) -> Shape {
    let mut headers = HeaderMap::new();
    let mut lines = input.split(|byte| *byte == b'\n');
    for name in [header::RETRY_AFTER, header::DATE] {
        if let Some(value) = lines.next().and_then(|line| HeaderValue::from_bytes(line).ok()) {
            headers.insert(name, value);
        }
    }
    let pause = upstream::pause(&headers);
    assert!(pause.is_none_or(|pause| pause.as_secs() <= 60));
    Shape::of(pause.map(|pause| pause.as_secs().checked_ilog2()))
}

/// The id of an answer that is cut anywhere is its id, or none.
fn cut_answers(input: &[u8]) -> Shape {
    let found = upstream::answered_id(input, input);
    let Ok(Frame::Response { id: Some(id), .. }) = Frame::parse(&Bytes::copy_from_slice(input)) else {
        return Shape::of((0, found.is_some()));
    };
    if id.raw().starts_with(b"\"") {
        return Shape::of(1);
    }
    assert_eq!(found, id.number(), "it is the answer to another");
    Shape::of((2, found.is_some()))
}

/// Questions of a result survive, and name their upstream where they are to.
fn questions(input: &[u8]) -> Shape {
    let Ok(object) = Object::parse(Bytes::copy_from_slice(input)) else { return Shape::of(0) };
    let found = input::questions(&object);
    if let Ok(found) = &found {
        let written = input::required(found, Some("state"));
        let again = input::questions(&written).map(|again| again.len());
        assert_eq!(again, Ok(found.len()));
    }
    for labelled in downstream::label("up\"", &Method::Elicitation, &object) {
        assert!(is_object(labelled.raw()));
    }
    for labelled in downstream::label("up", &Method::Sampling, &object) {
        assert!(is_object(labelled.raw()));
    }
    let declared = Declared::parse(object.raw(), Revision::V2026_07_28);
    assert!(json::document(declared.to_json(Revision::V2026_07_28).as_bytes()).is_ok());
    let filter = ListenFilter::parse(&object);
    if let Some(filter) = &filter {
        assert_eq!(ListenFilter::parse(&filter.to_params()).as_ref(), Some(filter));
    }
    let retry = input::retry(&object, &[("k".to_owned(), Object::empty())], Some(b"\"s\""));
    assert!(object.doubled().is_some() || input::answer(&retry, "k").is_some());
    Shape::of((found.map(|found| found.len().min(4)), filter.is_some(), declared.beyond.is_empty()))
}

/// Lines, each the parameters of a notification.
fn chunks(input: &[u8]) -> Shape {
    let objects: Vec<_> = input
        .split(|byte| *byte == b'\n')
        .filter_map(|line| Object::parse(Bytes::copy_from_slice(line)).ok())
        .collect();
    Shape::of((objects.len().min(5), upstream::chunks(&objects).min(5)))
}

/// A host and an origin, each on its line: what a page of another site says is refused at a loopback address.
fn hosts(input: &[u8]) -> Shape {
    let text = String::from_utf8_lossy(input);
    let (host, origin) = text.split_once('\n').unwrap_or((&text, ""));
    let listen = "127.0.0.1:8080".parse().expect("it is an address");
    let (asked, called) = downstream::admits(listen, &[], host, origin);
    let is_local = |text: &str| {
        ["127.", "localhost", "[::1]", "[::ffff:", "::1"].iter().any(|one| text.to_ascii_lowercase().contains(one))
            || text.contains('[')
    };
    assert!(!asked || is_local(host), "{host:?} is served at a loopback address");
    let admitted = downstream::admits(listen, &["example.com".to_owned()], host, origin);
    Shape::of((asked, called, admitted))
}
