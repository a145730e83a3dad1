//! Answers of a server that takes `{id, name, arguments}`: an object with the `id` of its call, and a result, contents or an error.

use crate::protocol::frame::message;
use crate::protocol::frame::rpc_error::RpcError;
use crate::protocol::json;
use bytes::Bytes;

/// The frame that a message stands for; none where it answers nothing, such as a ping or a notice.
pub(super) fn answer(text: &Bytes) -> Option<Bytes> {
    if json::document(text).is_err() {
        // It is told of as what it is.
        return Some(text.clone());
    }
    let member = |key| json::get(text, key).filter(|raw| *raw != b"null");
    let id = member("id").filter(|_| member("method").is_none())?;
    Some(match (member("error"), json::get(text, "result")) {
        (Some(error), _) => message::error(Some(id), RpcError::loosely(error).raw()),
        (None, Some(result)) => message::result(id, &of_result(result)),
        (None, None) if is_list(member("content").unwrap_or_default()) => {
            let mut result = [b"{\"content\":", member("content").unwrap_or_default()].concat();
            json::others(text, &["id", "content", "error"], &mut result);
            result.push(b'}');
            message::result(id, &result)
        }
        (None, None) => [b"{\"jsonrpc\":\"2.0\",\"id\":", id, b"}"].concat().into(),
    })
}

/// A result as clients know them: what has no contents becomes a text.
fn of_result(raw: &[u8]) -> Vec<u8> {
    if is_list(json::get(raw, "content").unwrap_or_default()) {
        return raw.to_vec();
    }
    if is_list(raw) {
        return [b"{\"content\":", raw, b"}"].concat();
    }
    let text = match json::unquote(raw) {
        Some(_) => String::from_utf8_lossy(raw),
        None => json::quote(&String::from_utf8_lossy(raw)).into(),
    };
    let mut result = [b"{\"content\":[{\"type\":\"text\",\"text\":", text.as_bytes(), b"}]"].concat();
    if raw.starts_with(b"{") {
        result.extend_from_slice(b",\"structuredContent\":");
        result.extend_from_slice(raw);
    }
    result.push(b'}');
    result
}

/// Whether it is a list of contents.
fn is_list(raw: &[u8]) -> bool {
    let is_content = |raw: &[u8]| json::get(raw, "type").is_some();
    json::elements(raw).is_ok_and(|places| places.into_iter().all(|place| is_content(&raw[place])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_become_frames_and_what_answers_nothing_becomes_none() {
        let text = |text: &str| format!(r#"{{"content":[{{"type":"text","text":{text}}}]"#);
        let result = |result: String| Some(format!(r#"{{"jsonrpc":"2.0","id":7,"result":{result}}}"#));
        let error = |code: i64, message: &str| {
            Some(format!(r#"{{"jsonrpc":"2.0","id":7,"error":{{"code":{code},"message":"{message}"}}}}"#))
        };
        for (said, expected) in [
            (r#"{"id":7,"result":{"content":[],"isError":true}}"#, result(r#"{"content":[],"isError":true}"#.into())),
            (r#"{"id":7,"result":[{"type":"text","text":"a"}]}"#, result(text("\"a\"") + "}")),
            (
                r#"{"id":7,"content":[{"type":"text","text":"a"}],"isError":false}"#,
                result(text("\"a\"") + ",\"isError\":false}"),
            ),
            (r#"{"id":7,"result":"a\u00e4"}"#, result(text("\"a\\u00e4\"") + "}")),
            (r#"{"id":7,"result":[1,2]}"#, result(text("\"[1,2]\"") + "}")),
            (r#"{"id":7,"result":null}"#, result(text("\"null\"") + "}")),
            (r#"{"id":7,"result":{"a":1}}"#, result(text(r#""{\"a\":1}""#) + ",\"structuredContent\":{\"a\":1}}")),
            (r#"{"id":7,"result":1,"error":null}"#, result(text("\"1\"") + "}")),
            (r#"{"id":7,"error":{"code":-5,"message":"no"}}"#, error(-5, "no")),
            (r#"{"id":7,"error":{"message":"no"}}"#, error(-32000, "no")),
            (r#"{"id":7,"error":"no"}"#, error(-32000, "no")),
            (r#"{"jsonrpc":"2.0","id":7,"result":{"content":[]}}"#, result(r#"{"content":[]}"#.into())),
            (r#"{"id":7}"#, Some(r#"{"jsonrpc":"2.0","id":7}"#.into())),
            (r#"{"id":7,"method":"ping"}"#, None),
            (r#"{"type":"ping"}"#, None),
            (r#"{"method":"notifications/progress","params":{}}"#, None),
            (r#"{"id":null,"result":1}"#, None),
            ("[1]", None),
            ("{", Some("{".into())),
        ] {
            let seen = answer(&Bytes::from_static(said.as_bytes()));
            assert_eq!(seen.map(|frame| String::from_utf8(frame.to_vec()).unwrap()), expected, "{said}");
        }
    }
}
