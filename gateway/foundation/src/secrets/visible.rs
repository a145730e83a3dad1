//! Foreign text on its way to a terminal: what that would obey, hide or turn round is written out instead.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a terminal acts on a character, or shows nothing of it: controls, marks of direction, what has no width, tags.
pub fn is_hidden(c: char) -> bool {
    let has_no_width = matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}');
    c.is_control() || has_no_width
}

/// The text with each hidden character written out: `\u{202e}`, `\n`.
pub fn visible(text: &str) -> Cow<'_, str> {
    written_out(text, is_hidden, |out, c| out.extend(c.escape_default()))
}

/// A foreign text in which all that a terminal or a log would act on is written out; a tab is a tab.
pub fn printable(text: &str) -> String {
    crate::steps::add(text.len());
    let pieces = text.trim_end().split_inclusive('\t').map(|piece| match piece.strip_suffix('\t') {
        Some(piece) => visible(piece).into_owned() + "\t",
        None => visible(piece).into_owned(),
    });
    pieces.collect()
}

/// Bytes as a text: those that are no UTF-8 are written out, `\xff`.
pub fn decoded(bytes: &[u8]) -> Cow<'_, str> {
    let mut chunks = bytes.utf8_chunks();
    let first = chunks.next();
    if let Some(whole) = first.as_ref().filter(|first| first.invalid().is_empty()) {
        return Cow::Borrowed(whole.valid());
    }
    let mut out = String::with_capacity(bytes.len() + 16);
    for chunk in first.into_iter().chain(chunks) {
        out.push_str(chunk.valid());
        for byte in chunk.invalid() {
            write!(out, "\\x{byte:02x}").expect("writing to a string does not fail");
        }
    }
    Cow::Owned(out)
}

/// The same for a JSON text, whose meaning stays: `\u202e`. Its own line breaks stay too, in its strings there are none; other space between
/// its tokens is a blank.
pub fn visible_json(text: &str) -> Cow<'_, str> {
    written_out(
        text,
        |c| c != '\n' && is_hidden(c),
        |out, c| {
            if matches!(c, '\t' | '\r') {
                return out.push(' ');
            }
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}").expect("writing to a string does not fail");
            }
        },
    )
}

fn written_out(text: &str, is_meant: impl Fn(char) -> bool, write: impl Fn(&mut String, char)) -> Cow<'_, str> {
    if !text.chars().any(&is_meant) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_meant(c) { write(&mut out, c) } else { out.push(c) }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_a_terminal_obeys_or_does_not_show_is_written_out() {
        assert_eq!(
            visible("a\u{1b}[2J\r\nb\u{9b}\u{202e}c\u{200b}\u{2066}\u{ad}\u{e0041}"),
            "a\\u{1b}[2J\\r\\nb\\u{9b}\\u{202e}c\\u{200b}\\u{2066}\\u{ad}\\u{e0041}"
        );
        assert!(matches!(visible("schön, 日本, ذ, ❤"), Cow::Borrowed(_)));
    }

    #[test]
    fn bytes_that_are_no_text_are_written_out() {
        assert_eq!(decoded(b"a\xff\xc3b\xe2\x82"), "a\\xff\\xc3b\\xe2\\x82");
        assert!(matches!(decoded("sch\u{f6}n \u{fffd}".as_bytes()), Cow::Borrowed(_)) && decoded(b"").is_empty());
    }

    #[test]
    fn what_is_said_to_be_json_hides_nothing_either() {
        assert_eq!(visible_json("{\r\n\t\"a\":1}\u{1b}[2J\u{0}"), "{ \n \"a\":1}\\u001b[2J\\u0000");
    }

    proptest! {
        #[test]
        fn a_json_text_means_what_it_meant_and_hides_nothing(text in ".*|[\u{7f}-\u{a0}\u{200b}-\u{206f}\u{e0000}-\u{e0fff}]*") {
            let plain = serde_json::to_string_pretty(&serde_json::json!({ "a": text })).unwrap();
            let shown = visible_json(&plain);
            prop_assert!(!shown.chars().any(|c| c != '\n' && is_hidden(c)), "{}", shown);
            let back: serde_json::Value = serde_json::from_str(&shown).unwrap();
            prop_assert_eq!(&back["a"], &serde_json::Value::String(text));
        }
    }
}
