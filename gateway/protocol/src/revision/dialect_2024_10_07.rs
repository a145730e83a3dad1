//! The dialect of 2024-10-07, taken for 2024-11-05: a tool's text in place of its content. Nothing else needs this file.

use super::table::Revision;
use crate::json;
use crate::value::Object;

/// The date that its upstreams name.
const DATE: &str = "2024-10-07";

/// The revision that a date stands for, where it is a dialect of one.
pub fn of(date: &str) -> Option<Revision> {
    (date == DATE).then_some(Revision::V2024_11_05)
}

/// A tool's result with the content that its text stands for.
pub fn with_content(result: Object) -> Object {
    let text = result.find("text").filter(|raw| raw.starts_with(b"\""));
    let (None, Some(text)) = (result.find("content"), text) else { return result };
    let mut out = [b"{\"content\":[{\"type\":\"text\",\"text\":", text, b"}]"].concat();
    json::others(result.raw(), &["text"], &mut out);
    out.push(b'}');
    Object::parse(out.into()).unwrap_or(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_becomes_content_and_nothing_else_changes() {
        for (raw, expected) in [
            (
                r#"{"text":"a\u0042","isError":true}"#,
                r#"{"content":[{"type":"text","text":"a\u0042"}],"isError":true}"#,
            ),
            (r#"{"text":"a","content":[]}"#, r#"{"text":"a","content":[]}"#),
            (r#"{"text":7}"#, r#"{"text":7}"#),
        ] {
            assert_eq!(with_content(Object::parse(raw.into()).unwrap()).raw(), expected);
        }
    }
}
