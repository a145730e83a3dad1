//! Where texts stand in what is called and in what comes back; each may be written anew. Pure.

use crate::config::redaction::Patterns;
use crate::protocol::json;
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
            // The members of a finished task.
            (Self::Result, b"result") => self,
            (Self::Result, b"statusMessage") | (Self::Contents, b"structuredContent") => Self::Every,
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
    // A frame was checked before. If a value is malformed after all, its secrets cannot be located.
    if found.walk(scope).is_none() {
        return Some((WITHHELD.into(), 1));
    }
    (!found.changes.is_empty()).then(|| (splice::replace(raw, &found.changes), found.changes.len()))
}

struct Found<'a> {
    raw: &'a [u8],
    patterns: &'a Patterns,
    is_cancelled: &'a AtomicBool,
    changes: Vec<(Range<usize>, &'static str)>,
}

/// An object or an array that is open.
struct Open {
    is_object: bool,
    /// What the texts below it are.
    scope: Scope,
}

impl Found<'_> {
    /// Reads each byte once, independent of the number and the depth of the elements. Returns `None` if the value is malformed, or if
    /// the search was cancelled.
    fn walk(&mut self, scope: Scope) -> Option<()> {
        let mut open: Vec<Open> = Vec::new();
        let (mut next, mut is_key) = (scope, false);
        let mut at = json::space(self.raw, 0);
        while let Some(byte) = self.raw.get(at) {
            if self.is_cancelled.load(Ordering::Relaxed) {
                return None;
            }
            match byte {
                b'{' | b'[' if next != Scope::Nothing => {
                    is_key = *byte == b'{';
                    open.push(Open { is_object: is_key, scope: next });
                    at += 1;
                }
                b'}' | b']' => {
                    open.pop()?;
                    at += 1;
                }
                b',' => {
                    let within = open.last()?;
                    (next, is_key) = (within.scope, within.is_object);
                    at += 1;
                }
                b':' => at += 1,
                _ => {
                    let end = json::value(self.raw, at).ok()?;
                    if is_key {
                        next = open.last()?.scope.of(json::unquote_lossy(&self.raw[at..end])?.as_bytes());
                        is_key = false;
                    } else if *byte == b'"' && next == Scope::Every {
                        self.text(at..end);
                    }
                    at = end;
                }
            }
            at = json::space(self.raw, at);
        }
        open.is_empty().then_some(())
    }

    fn text(&mut self, place: Range<usize>) {
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
    fn results_and_messages_of_tasks_are_redacted() {
        let task = r#"{"taskId":"hush","status":"completed","statusMessage":"a hush","result":{"content":[{"type":"text","text":"hush"}],"structuredContent":{"k":"hush"}}}"#;
        let (text, count) = of(task, Scope::Result).unwrap();
        assert_eq!(count, 3);
        assert!(text.starts_with(r#"{"taskId":"hush","status""#) && text.matches("hush").count() == 1, "{text}");
    }

    /// Neither the number of elements nor the depth hides a text.
    #[test]
    fn redaction_finds_texts_in_long_and_deep_arrays() {
        let long = format!(r#"{{"arguments":{{"t":["hush"{}]}}}}"#, ",0".repeat(100_000));
        assert_eq!(of(&long, Scope::Params), Some((long.replace("hush", "[redacted]"), 1)));
        let deep = format!(r#"{{"arguments":{}"hush",{{}},[]{}}}"#, "[".repeat(120), "]".repeat(120));
        assert_eq!(of(&deep, Scope::Params), Some((deep.replace("hush", "[redacted]"), 1)));
    }

    #[test]
    fn malformed_values_are_withheld() {
        for value in [r#"{"arguments":{"x":"hush"#, r#"{"arguments":["hush"#, r#"{"arguments":{"x":1"#, "]", r#"{"a\"#]
        {
            assert_eq!(of(value, Scope::Params), Some((WITHHELD.to_owned(), 1)), "{value}");
        }
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
