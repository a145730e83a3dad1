//! Structured results for receivers that have none, or objects only.

use super::{blocks, edit};
use crate::protocol::object::{Key, Object};
use crate::protocol::revision::Features;

/// What becomes of a structured result that the receiver cannot have.
pub(super) struct Gone<'a> {
    /// The value, where nothing else says it: it is said in words.
    pub(super) said: Option<&'a str>,
}

/// `None` where the structured result stays, or there is none; `content` is the raw array beside it.
pub(super) fn gone<'a>(result: &'a Object, content: &[u8], lost: Features) -> Option<Gone<'a>> {
    let raw = result.get(Key::StructuredContent)?;
    let is_object = raw.starts_with(b"{");
    if !lost.has(Features::STRUCTURED) && (is_object || !lost.has(Features::ANY_JSON)) {
        return None;
    }
    let is_said = match is_object {
        // Who gave an object to those that know it gave the others its words.
        true => edit::each(content).next().is_some(),
        false => raw == b"null" || edit::each(content).any(|block| says(block, raw)),
    };
    Some(Gone { said: std::str::from_utf8(raw).ok().filter(|_| !is_said) })
}

/// The value in words.
pub(super) fn in_words(value: &str) -> Vec<u8> {
    blocks::words(value)
}

/// Whether a text block holds this JSON value, however it is spaced.
fn says(block: &[u8], value: &[u8]) -> bool {
    let Some(text) = edit::text(block, "text") else { return false };
    let is_its_text = || crate::protocol::json::unquote(value).is_some_and(|value| value == text);
    dense(text.as_bytes()).eq(dense(value)) || is_its_text()
}

/// The bytes of a JSON text without the space between its tokens.
fn dense(json: &[u8]) -> impl Iterator<Item = u8> {
    let (mut is_inside, mut is_escaped) = (false, false);
    json.iter().copied().filter(move |byte| {
        let is_quote = *byte == b'"' && !is_escaped;
        is_escaped = is_inside && *byte == b'\\' && !is_escaped;
        is_inside ^= is_quote;
        is_inside || !byte.is_ascii_whitespace()
    })
}
