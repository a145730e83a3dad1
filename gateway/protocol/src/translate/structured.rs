//! Structured results for receivers that have none, or objects only.

use super::edit;
use crate::json;
use crate::revision::Features;
use crate::value::{Key, Object};

/// What becomes of a structured result that the receiver cannot have.
pub(super) struct Gone<'a> {
    /// The value, where nothing else says it: it is said in words.
    pub(super) said: Option<&'a str>,
}

/// `None` where the structured result stays, or there is none; `content` is the raw array beside it.
pub(super) fn gone<'a>(result: &'a Object, content: &[u8], lost: Features) -> Option<Gone<'a>> {
    let raw = result.get(Key::StructuredContent)?;
    let is_object = raw.starts_with(b"{");
    if stays(raw, lost) {
        return None;
    }
    let is_said = match is_object {
        // Who gave an object to those that know it gave the others its words.
        true => edit::each(content).next().is_some(),
        false => {
            let text = json::unquote(raw);
            raw == b"null" || edit::each(content).any(|block| says(block, raw, text.as_deref()))
        }
    };
    Some(Gone { said: std::str::from_utf8(raw).ok().filter(|_| !is_said) })
}

/// How long the structured result is, where the receiver cannot have it.
pub(super) fn gone_len(result: &Object, lost: Features) -> usize {
    let gone = result.get(Key::StructuredContent).filter(|raw| !stays(raw, lost));
    gone.map_or(0, |raw| raw.len())
}

/// Whether the receiver can have this structured result.
fn stays(raw: &[u8], lost: Features) -> bool {
    !lost.has(Features::STRUCTURED) && (raw.starts_with(b"{") || !lost.has(Features::ANY_JSON))
}

/// How long the words may be that say the value, at most.
pub(super) fn words_max(result: &Object, content: &[u8], lost: Features) -> usize {
    let Some(raw) = result.get(Key::StructuredContent) else { return 0 };
    if stays(raw, lost) || raw.starts_with(b"{") && edit::each(content).next().is_some() {
        return 0;
    }
    std::str::from_utf8(raw).map_or(0, json::quoted_len)
}

/// Whether a text block holds this JSON value, however it is spaced; `inner` is its text where it is one.
fn says(block: &[u8], value: &[u8], inner: Option<&str>) -> bool {
    let Some(text) = edit::text(block, "text") else { return false };
    inner == Some(&*text) || dense(text.as_bytes()).eq(dense(value))
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
