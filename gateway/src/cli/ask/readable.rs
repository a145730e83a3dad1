//! What an upstream may send and not every reader takes, made readable: it passes through the gateway as it is, and one odd tool must not keep
//! a person from all the others.

use serde_json::Value;

use crate::protocol::json;

/// A value for a person. In a text that has half a character U+FFFD stands in its place, and a number that is too large is a text.
pub(super) fn value(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text).or_else(|error| match mended(text) {
        Some(mended) => serde_json::from_str(&mended),
        None => Err(error),
    })
}

/// The same value with nothing that is not read; `None` where it is none.
fn mended(text: &str) -> Option<String> {
    let raw = text.as_bytes();
    json::document(raw).ok()?;
    let (mut out, mut at) = (String::with_capacity(raw.len()), 0);
    while let Some(byte) = raw.get(at) {
        let end = match byte {
            b'"' | b'-' | b'0'..=b'9' => json::value(raw, at).ok()?,
            _ => at + 1,
        };
        let token = text.get(at..end)?;
        match byte {
            b'"' if json::unquote(token.as_bytes()).is_none() => out.push_str(&json::quote(&lossy(token))),
            b'-' | b'0'..=b'9' if !token.parse::<f64>().is_ok_and(f64::is_finite) => out.push_str(&json::quote(token)),
            _ => out.push_str(token),
        }
        at = end;
    }
    Some(out)
}

/// A text in quotes, without them.
fn lossy(quoted: &str) -> String {
    let mut units: Vec<u16> = Vec::with_capacity(quoted.len());
    let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or_default();
    let mut chars = inner.chars();
    while let Some(char) = chars.next() {
        match if char == '\\' { chars.next() } else { None } {
            Some('u') => {
                let digits: String = chars.by_ref().take(4).collect();
                units.push(u16::from_str_radix(&digits, 16).unwrap_or(0xfffd));
            }
            Some(escape) => {
                let meant = match escape {
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    plain => plain,
                };
                units.push(meant as u16);
            }
            None => units.extend_from_slice(char.encode_utf16(&mut [0; 2])),
        }
    }
    String::from_utf16_lossy(&units)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn half_a_character_and_a_number_without_bounds_keep_nobody_from_the_rest() {
        let read = |text: &str| value(text).unwrap();
        assert_eq!(read(r#"{"a": ["\ud83e\udd80\ud800x\n\"", -1.5e3]}"#), json!({"a": ["🦀\u{fffd}x\n\"", -1500.0]}));
        assert_eq!(
            read(r#"{"\udc00é": 1e400, "b": [{}, null, true]}"#),
            json!({"\u{fffd}é": "1e400", "b": [{}, null, true]})
        );
        assert_eq!(read("[1, 2]"), json!([1, 2]));
        for broken in ["", "{", "[1e400", "\"\\ud800"] {
            assert!(value(broken).is_err(), "{broken}");
        }
    }
}
