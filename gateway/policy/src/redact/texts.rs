//! Where texts stand in what is called and in what comes back; each may be written anew. Pure.

use crate::config::redaction::Patterns;
use crate::protocol::json;
use crate::protocol::json::Members;
use crate::protocol::value::splice;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// What the texts below a value are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// The parameters of a call: all texts in its arguments, and in answers to questions, are a person's or a model's.
    Params,
    /// A result: in contents the texts, in structured content all of them.
    Result,
    /// The parameters of a notification that comes before the result: what it says.
    Notice,
    /// Contents: what stands under `text` is one.
    Contents,
    /// Everything is.
    Every,
    /// Nothing is: names, addresses, and data that are no text.
    Nothing,
}

impl Scope {
    /// What the texts of a member are.
    fn of(self, key: &[u8]) -> Self {
        match (self, key) {
            (Self::Params, b"arguments" | b"inputResponses") | (Self::Result, b"structuredContent" | b"toolResult") => {
                Self::Every
            }
            (Self::Notice, b"message" | b"data") | (Self::Contents, b"text") => Self::Every,
            (Self::Result, b"content" | b"contents" | b"messages") => Self::Contents,
            (Self::Contents, b"_meta" | b"annotations" | b"blob" | b"data") => Self::Nothing,
            (Self::Contents | Self::Every, _) => self,
            _ => Self::Nothing,
        }
    }
}

/// Stands in the place of a secret.
const REDACTED: &str = "[redacted]";
/// Stands in the place of a text whose search was given up.
const WITHHELD: &str = "\"[withheld: too much work to search for secrets]\"";

/// The value without secrets, where its texts have any, and how many they had. The work stops once it is cancelled: what it gives then
/// is of no use.
pub(super) fn redacted(
    raw: &[u8],
    scope: Scope,
    patterns: &Patterns,
    is_cancelled: &AtomicBool,
) -> Option<(Vec<u8>, usize)> {
    let mut found = Found { raw, patterns, is_cancelled, changes: Vec::new() };
    found.walk(json::space(raw, 0)..raw.len(), scope);
    (!found.changes.is_empty()).then(|| (splice::replace(raw, &found.changes), found.changes.len()))
}

struct Found<'a> {
    raw: &'a [u8],
    patterns: &'a Patterns,
    is_cancelled: &'a AtomicBool,
    changes: Vec<(Range<usize>, &'static str)>,
}

impl Found<'_> {
    /// As deep as a frame may be nested.
    fn walk(&mut self, place: Range<usize>, scope: Scope) {
        let value = &self.raw[place.clone()];
        match value.first() {
            _ if scope == Scope::Nothing => {}
            Some(b'{') => {
                for member in Members::of(value).into_iter().flatten().flatten() {
                    let key = member.key(value).unwrap_or_default();
                    self.walk(place.start + member.value..place.start + member.end, scope.of(&key));
                }
            }
            Some(b'[') => {
                for element in json::elements(value).into_iter().flatten() {
                    self.walk(place.start + element.start..place.start + element.end, scope);
                }
            }
            Some(b'"') if scope == Scope::Every => self.text(place),
            _ => {}
        }
    }

    fn text(&mut self, place: Range<usize>) {
        if self.is_cancelled.load(Ordering::Relaxed) {
            return;
        }
        let written = &self.raw[place.clone()];
        let Some(text) = json::unquote_lossy(written) else { return };
        let matches = self.patterns.search(&text, self.is_cancelled);
        if matches.is_withheld {
            self.changes.push((place, WITHHELD));
        } else if !matches.places.is_empty() {
            let places = json::written_places(written, &matches.places);
            let places = places.into_iter().map(|found| place.start + found.start..place.start + found.end);
            self.changes.extend(places.map(|found| (found, REDACTED)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Redaction;

    fn of(raw: &str, scope: Scope) -> Option<(String, usize)> {
        let patterns = Patterns::new(&Redaction { keys: false, patterns: vec!["hush(?-u:\\b)".to_owned()] });
        let (text, count) = redacted(raw.as_bytes(), scope, &patterns, &AtomicBool::new(false))?;
        Some((String::from_utf8(text).unwrap(), count))
    }

    #[test]
    fn texts_of_contents_are_redacted_and_nothing_else_of_them() {
        let result = r#" {"content" : [{"type":"text","text":"a hush, \"hush\" \u00e9"},{"type":"image","data":"hush","mimeType":"hush"},
            {"type":"resource","resource":{"uri":"hush:","text":"hush","_meta":{"text":"hush"}}}],"isError":false,"other":"hush"}"#;
        let (text, count) = of(result, Scope::Result).unwrap();
        assert_eq!(count, 3);
        let expected = result
            .replace(r#""a hush, \"hush\" \u00e9""#, r#""a [redacted], \"[redacted]\" \u00e9""#)
            .replace(r#""text":"hush","_meta""#, r#""text":"[redacted]","_meta""#);
        assert_eq!(text, expected);
        for (result, expected) in [
            (
                r#"{"contents":[{"uri":"x:hush","text":"hush"},{"uri":"y:","blob":"hush"}]}"#,
                r#"{"contents":[{"uri":"x:hush","text":"[redacted]"},{"uri":"y:","blob":"hush"}]}"#,
            ),
            (
                r#"{"messages":[{"role":"user","content":{"type":"text","text":"hush"}}]}"#,
                r#"{"messages":[{"role":"user","content":{"type":"text","text":"[redacted]"}}]}"#,
            ),
            (
                r#"{"content":[],"structuredContent":{"hush":["hush",{"data":"hush"},1]}}"#,
                r#"{"content":[],"structuredContent":{"hush":["[redacted]",{"data":"[redacted]"},1]}}"#,
            ),
        ] {
            assert_eq!(of(result, Scope::Result).unwrap().0, expected);
        }
        assert_eq!(
            of(r#"{"tools":[{"name":"hush","description":"hush"}],"_meta":{"text":"hush"}}"#, Scope::Result),
            None
        );
        assert_eq!(of(r#"{"content":[{"type":"text","text":"nothing"}]}"#, Scope::Result), None);
    }

    #[test]
    fn arguments_are_redacted_and_names_are_not() {
        let params = r#"{"name":"hush","arguments":{"hush":"hush","deep":[{"x":"a hush"}]},"_meta":{"x":"hush"}}"#;
        let expected =
            r#"{"name":"hush","arguments":{"hush":"[redacted]","deep":[{"x":"a [redacted]"}]},"_meta":{"x":"hush"}}"#;
        assert_eq!(of(params, Scope::Params), Some((expected.to_owned(), 2)));
        let notice = r#"{"progressToken":"hush","message":"hush"}"#;
        assert_eq!(of(notice, Scope::Notice).unwrap().0, r#"{"progressToken":"hush","message":"[redacted]"}"#);
    }

    /// Escapes hide nothing, in a text with a lone surrogate either; the rest of the text stays as it is written.
    #[test]
    fn redaction_sees_through_escapes_beside_lone_surrogates() {
        for (written, expected) in [
            (r"\ud800 hush", r"\ud800 [redacted]"),
            (r"\ud800 \u0068ush \n\\", r"\ud800 [redacted] \n\\"),
            (
                r"\udc00\u00e9 h\u0075s\u0068, \ud83d\ude00 hush\ud83d",
                r"\udc00\u00e9 [redacted], \ud83d\ude00 [redacted]\ud83d",
            ),
        ] {
            let params = |text: &str| format!(r#"{{"arguments":{{"x":"{text}"}}}}"#);
            let result = |text: &str| format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#);
            assert_eq!(of(&params(written), Scope::Params).unwrap().0, params(expected));
            assert_eq!(of(&result(written), Scope::Result).unwrap().0, result(expected));
        }
    }

    #[test]
    fn withheld_text_is_replaced_as_a_whole() {
        let patterns = Patterns::new(&Redaction { keys: false, patterns: vec!["[0-9]{4}(?:.*x)?".to_owned()] });
        let params = format!(r#"{{"arguments":{{"x":"{}","y":"1234"}}}}"#, "1234 ".repeat(20_000));
        let (text, count) = redacted(params.as_bytes(), Scope::Params, &patterns, &AtomicBool::new(false)).unwrap();
        let expected = format!(r#"{{"arguments":{{"x":{WITHHELD},"y":"[redacted]"}}}}"#);
        assert_eq!((String::from_utf8(text).unwrap(), count), (expected, 2));
    }
}
