//! The dialect of 2024-10-07, spoken as 2024-11-05 with a tool's text beside its content. Nothing else needs this file.

use crate::protocol::frame::Method;
use crate::protocol::json;
use crate::protocol::revision::Revision;
use crate::protocol::value::Object;

/// The date that its clients ask for.
const DATE: &str = "2024-10-07";

/// The revision that a date stands for, where it is a dialect of one.
pub(crate) fn of(date: &str) -> Option<Revision> {
    (date == DATE).then_some(Revision::V2024_11_05)
}

/// A result in the words of the dialect.
pub(crate) fn dress(method: &Method, result: &Object) -> Object {
    let dressed = match method {
        Method::Initialize => with(result, "protocolVersion", &json::quote(DATE)),
        Method::ToolsCall if result.find("text").is_none() => with(result, "text", &json::quote(&text_of(result))),
        _ => return result.clone(),
    };
    Object::parse(dressed.into()).unwrap_or_else(|_| result.clone())
}

/// The result with this member in place of what it had under that name.
fn with(result: &Object, key: &str, value: &str) -> Vec<u8> {
    let mut out = format!("{{\"{key}\":{value}").into_bytes();
    json::others(result.raw(), &[key], &mut out);
    out.push(b'}');
    out
}

/// All text of a result's content.
fn text_of(result: &Object) -> String {
    let content = result.find("content").unwrap_or(b"[]");
    let blocks = json::elements(content).unwrap_or_default().into_iter().map(|place| &content[place]);
    let texts = blocks.filter_map(|block| json::unquote(json::get(block, "text")?).map(String::from));
    texts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_stays_and_its_text_stands_beside_it() {
        let dressed = |method, raw: &'static str| dress(&method, &Object::parse(raw.into()).unwrap()).raw().clone();
        let content =
            r#"{"content":[{"type":"text","text":"a"},{"type":"image","data":""},{"type":"text","text":"b"}]}"#;
        assert_eq!(dressed(Method::ToolsCall, content), format!(r#"{{"text":"a\nb",{}"#, &content[1..]));
        assert_eq!(dressed(Method::ToolsCall, r#"{"text":7}"#), r#"{"text":7}"#);
        assert_eq!(dressed(Method::PromptsGet, "{}"), "{}");
        assert_eq!(
            dressed(Method::Initialize, r#"{"protocolVersion":"2024-11-05","x":1}"#),
            r#"{"protocolVersion":"2024-10-07","x":1}"#
        );
    }
}
