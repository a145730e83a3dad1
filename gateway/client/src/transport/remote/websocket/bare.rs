//! Answers of a server that takes `{id, name, arguments}`: an object with the `id` of its call, and a result, contents or an error.

use crate::protocol::frame::message;
use crate::protocol::frame::rpc_error::RpcError;
use crate::protocol::json;
use crate::protocol::payload::loose;
use crate::transport::pipe::reader::excerpt;
use bytes::Bytes;

/// The longest float that is read as an id, and the number up to which floats are exact.
const FLOAT_BYTES: usize = 16;
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// The frame that a message stands for; none where it answers nothing, such as a ping or a notice.
pub(crate) fn answer(text: &Bytes) -> Option<Bytes> {
    if json::document(text).is_err() {
        // It is told of as what it is.
        return Some(text.clone());
    }
    let member = |key| json::get(text, key).filter(|raw| *raw != b"null");
    let id = number(text).filter(|_| member("method").is_none())?.to_string();
    let id = id.as_bytes();
    let content = member("content").filter(|list| loose::is_list(list));
    // Beside a content an empty result says nothing, and beside either does an error that is none.
    let result = json::get(text, "result").filter(|raw| *raw != b"null" || content.is_none());
    let error = member("error").filter(|raw| *raw != b"false" || result.is_none() && content.is_none());
    Some(match (error, result) {
        (Some(error), _) => message::error(Some(id), RpcError::loosely(error).raw()),
        (None, Some(result)) => message::result(id, &loose::result(result)),
        (None, None) if let Some(content) = content => {
            let mut result = [b"{\"content\":", content].concat();
            json::others(text, &["id", "jsonrpc", "content", "result", "error"], &mut result);
            result.push(b'}');
            message::result(id, &result)
        }
        (None, None) => [b"{\"jsonrpc\":\"2.0\",\"id\":", id, b"}"].concat().into(),
    })
}

/// The number of the call that it answers: a text of that number, or a float, means it, too.
fn number(text: &[u8]) -> Option<u64> {
    let mut ids = ids(text);
    let raw = ids.next()?;
    if ids.next().is_some() {
        return None;
    }
    let unquoted = json::unquote(raw);
    let digits = unquoted.as_deref().or(std::str::from_utf8(raw).ok())?;
    if let Ok(number) = digits.parse::<u64>() {
        return (number.to_string() == digits).then_some(number);
    }
    // One that is longer may be another number, and read as this one.
    let float = digits.parse::<f64>().ok().filter(|_| unquoted.is_none() && raw.len() <= FLOAT_BYTES)?;
    (float.is_sign_positive() && float.fract() == 0.0 && float < EXACT_MAX).then_some(float as u64)
}

fn ids(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let members = json::Members::of(text).into_iter().flatten().flatten();
    members.filter(|member| member.key(text).as_deref() == Some(b"id")).map(|member| &text[member.value..member.end])
}

/// What is wrong with an answer for which there is no frame, since nothing says whose it is; none where it answers nothing.
pub(crate) fn unmatched(text: &[u8]) -> Option<String> {
    let has = |key| json::get(text, key).is_some();
    if has("method") || !["result", "error", "content"].into_iter().any(has) {
        return None;
    }
    let mut ids = ids(text);
    Some(match (ids.next(), ids.next()) {
        (None, _) => format!("an answer without `id`: {}", excerpt(text)),
        (Some(_), Some(_)) => format!("an answer with more than one `id`: {}", excerpt(text)),
        (Some(id), None) => format!("an answer to an unknown id: {}", excerpt(id)),
    })
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
            (r#"{"id":"7","result":{"content":[]}}"#, result(r#"{"content":[]}"#.into())),
            (r#"{"id":7.0,"result":{"content":[]}}"#, result(r#"{"content":[]}"#.into())),
            (r#"{"id":7e0,"result":{"content":[]}}"#, result(r#"{"content":[]}"#.into())),
            (
                r#"{"jsonrpc":"2.0","id":7,"result":null,"content":[{"type":"text","text":"a"}]}"#,
                result(text("\"a\"") + "}"),
            ),
            (r#"{"id":7,"error":false,"result":"yes"}"#, result(text("\"yes\"") + "}")),
            (r#"{"id":7,"error":false}"#, error(-32000, "false")),
            (r#"{"id":7}"#, Some(r#"{"jsonrpc":"2.0","id":7}"#.into())),
            (r#"{"id":7,"method":"ping"}"#, None),
            (r#"{"type":"ping"}"#, None),
            (r#"{"method":"notifications/progress","params":{}}"#, None),
            (r#"{"id":null,"result":1}"#, None),
            (r#"{"id":7,"id":7,"result":1}"#, None),
            (r#"{"id":"07","result":1}"#, None),
            (r#"{"id":"7.0","result":1}"#, None),
            (r#"{"id":7.5,"result":1}"#, None),
            (r#"{"id":-7.0,"result":1}"#, None),
            (r#"{"id":7.0000000000000000001,"result":1}"#, None),
            (r#"{"id":[7],"result":1}"#, None),
            ("[1]", None),
            ("{", Some("{".into())),
        ] {
            let seen = answer(&Bytes::from_static(said.as_bytes()));
            assert_eq!(seen.map(|frame| String::from_utf8(frame.to_vec()).unwrap()), expected, "{said}");
        }
    }

    #[test]
    fn an_answer_to_no_call_is_told_with_its_id_and_what_answers_nothing_is_not() {
        for (said, expected) in [
            (r#"{"id":"x","result":1}"#, Some("an answer to an unknown id: \"x\"")),
            (r#"{"result":1,"id":[7]}"#, Some("an answer to an unknown id: [7]")),
            (r#"{"id":null,"error":"no"}"#, Some("an answer to an unknown id: null")),
            (r#"{"content":[]}"#, Some("an answer without `id`: {\"content\":[]}")),
            (
                r#"{"id":7,"id":8,"result":1}"#,
                Some("an answer with more than one `id`: {\"id\":7,\"id\":8,\"result\":1}"),
            ),
            (r#"{"type":"ping","id":"x"}"#, None),
            (r#"{"method":"x","result":1}"#, None),
            ("[1]", None),
        ] {
            assert_eq!(unmatched(said.as_bytes()).as_deref(), expected, "{said}");
        }
        let long = unmatched(format!("{{\"id\":\"{}\",\"result\":1}}", "x".repeat(5000)).as_bytes()).unwrap();
        assert!(long.len() < 200, "{long}");
    }
}
