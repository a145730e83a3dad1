//! Answers that are no frames: those in parts, and those in the dialect `{id, name, arguments}`.

use super::target::{Shape, Target, WORDS};
use super::values::is_object;
use bytes::Bytes;
use trunkline::fuzzing::upstream;
use trunkline::protocol::frame::message::{Body, Frame};
use trunkline::protocol::json;

pub(super) const TARGETS: &[Target] = &[
    Target { name: "parts", body: parts, words: PARTS },
    Target { name: "bare_answers", body: bare_answers, words: WORDS },
];

const PARTS: &[&str] = &[
    "result ",
    "complete ",
    "error ",
    "\n",
    "{\"id\":7,\"result\":",
    "{\"content\":[",
    "{\"type\":\"text\",\"text\":\"a\"}",
    "\"isError\":true",
    "\"structuredContent\":{}",
    "\"error\":false",
];
/// The most bytes of all parts.
const MAX: usize = 256;

/// Lines, each the name of an event and its data. What comes of them is an answer as clients know them.
fn parts(input: &[u8]) -> Shape {
    let event = |line: &[u8]| {
        let end = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
        (Bytes::copy_from_slice(&line[..end]), Bytes::copy_from_slice(line.get(end + 1..).unwrap_or_default()))
    };
    let events: Vec<_> = input.split(|byte| *byte == b'\n').map(event).collect();
    let Some((kind, said)) = upstream::joined(events, MAX) else { return Shape::of(0) };
    match kind {
        "result" => {
            assert!(is_object(&said), "a result is no object");
            let content = json::get(&said, "content").expect("a result has contents");
            assert!(json::elements(content).is_ok(), "its contents are no list");
        }
        "error" => assert!(is_object(&said) && json::get(&said, "message").is_some(), "an error says nothing"),
        "unjoined" => assert!(!said.is_empty()),
        other => panic!("it is {other}: {}", String::from_utf8_lossy(&said)),
    }
    Shape::of((kind, said.len().checked_ilog2()))
}

/// A message becomes a frame that answers a call, or none, which is told where it answers something.
fn bare_answers(input: &[u8]) -> Shape {
    let text = Bytes::copy_from_slice(input);
    let (answer, unmatched) = upstream::bare(&text);
    let Some(answer) = answer else { return Shape::of((0, unmatched.is_some())) };
    if json::document(&text).is_err() {
        assert_eq!(answer, text, "what is no JSON is told as it is");
        return Shape::of(1);
    }
    let Ok(Frame::Response { id: Some(id), body }) = Frame::parse(&answer) else {
        panic!("it is no answer: {}", String::from_utf8_lossy(&answer))
    };
    assert!(id.number().is_some(), "it answers no call of ours");
    if let Body::Result(result) = &body {
        assert!(
            json::get(result.raw(), "content").is_some_and(|list| json::elements(list).is_ok()),
            "without contents"
        );
    }
    Shape::of((2, std::mem::discriminant(&body), answer.len().checked_ilog2()))
}
