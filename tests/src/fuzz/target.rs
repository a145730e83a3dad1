//! What is fuzzed: a name, a body, and the words that its inputs are made of.

use super::{bytes, files, foreign, multiplexed, parts, routes, sealed, values, websocket};
use std::hash::{DefaultHasher, Hash, Hasher};

/// One thing that reads bytes.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name, and that of its folder in `tests/corpus`.
    pub name: &'static str,
    /// Reads an input and judges what came of it; panics where that is wrong. What it returns tells kinds of inputs apart.
    pub body: fn(&[u8]) -> Shape,
    /// Words that inputs are made of, beside those of JSON.
    pub words: &'static [&'static str],
}

/// What came of an input, as far as inputs are to be told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape(pub u64);

impl Shape {
    /// Of what came of it.
    pub fn of(what: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        what.hash(&mut hasher);
        Self(hasher.finish())
    }

    /// Of a message, figures aside.
    pub fn of_text(text: &str) -> Self {
        Self::of(text.chars().filter(|char| !char.is_ascii_digit()).take(60).collect::<String>())
    }
}

/// All that is fuzzed.
#[must_use]
pub fn all() -> Vec<Target> {
    let streams = [bytes::TARGETS, websocket::TARGETS, multiplexed::TARGETS, parts::TARGETS].concat();
    let rest = [values::TARGETS, routes::TARGETS, sealed::TARGETS, files::TARGETS, foreign::TARGETS];
    [streams, rest.concat()].concat()
}

/// The one with this name.
#[must_use]
pub fn named(name: &str) -> Option<Target> {
    all().into_iter().find(|target| target.name == name)
}

/// The words of MCP.
pub(super) const WORDS: &[&str] = &[
    "\"jsonrpc\":\"2.0\"",
    "\"id\":1",
    "\"method\":\"tools/call\"",
    "\"params\":{}",
    "\"result\":{}",
    "\"error\":{\"code\":-32600}",
    "\"name\":",
    "\"uri\":",
    "\"_meta\":{",
    "\"arguments\":{",
    "\"requestState\":",
    "\"inputResponses\":{",
    "\"content\":[",
    "\"type\":\"text\"",
    "\"structuredContent\":",
    "\"progressToken\":",
    "\"taskId\":",
    "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"",
    "\"resultType\":\"input_required\"",
    "\"inputRequests\":{",
    "\\u0000",
    "\\ud800",
    "n\\u0061me",
];
