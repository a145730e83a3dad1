//! An answer in parts: events `result` on the stream of a call, and the event `complete` or `error` that ends it.

use crate::memory::Gather;
use crate::memory::budget::Spent;
use crate::protocol::frame::message::{Body, Id};
use crate::protocol::frame::rpc_error::RpcError;
use crate::protocol::framing::sse::SseEvent;
use crate::protocol::json;
use crate::protocol::value::Object;
use crate::runtime::aside;
use bytes::Bytes;

/// The parts of one answer.
#[derive(Debug)]
pub(crate) struct Fragments {
    /// Their contents, raw, joined by commas.
    contents: Gather,
    /// What the last of them says besides.
    beside: Vec<u8>,
    /// The most bytes of all contents.
    max: usize,
}

/// Why parts are not put together.
#[derive(Debug)]
pub(crate) enum Unjoined {
    /// They have more than there may be.
    TooLong(String),
    /// There is no memory for them.
    NoRoom(Spent),
}

/// What an event says.
enum Said {
    Result(Bytes),
    Error(RpcError),
}

/// Takes an event of another name than a message has; the answer to the request `id` where it ends that. `parts` are those before it,
/// which are put together in `room`, up to `max` bytes.
pub(crate) fn take(
    parts: &mut Option<Box<Fragments>>,
    event: &SseEvent,
    id: u64,
    (max, room): (usize, impl FnOnce() -> Gather),
) -> Option<Result<Body, Unjoined>> {
    if !matches!(&event.name[..], b"result" | b"complete" | b"error") {
        return None;
    }
    aside(event.data.len(), || {
        let said = match said(&event.data, id)? {
            Said::Error(error) => return Some(Ok(Body::Error(error.raw().clone()))),
            Said::Result(said) => said,
        };
        match &event.name[..] {
            b"error" => Some(Ok(Body::Error(RpcError::loosely(&said).raw().clone()))),
            b"complete" => Some(Ok(whole(parts.take(), &said))),
            _ => {
                let none = || Box::new(Fragments { contents: room(), beside: Vec::new(), max });
                parts.get_or_insert_with(none).push(&said).err().map(Err)
            }
        }
    })
}

/// What the data of an event says: of a JSON-RPC message the result or the error. None where that is of another request.
fn said(data: &Bytes, id: u64) -> Option<Said> {
    if json::document(data).is_err() || !data.trim_ascii_start().starts_with(b"{") {
        return Some(Said::Result(data.clone()));
    }
    if let Some(of) = json::get(data, "id").filter(|raw| *raw != b"null") {
        Id::from_raw(data.slice_ref(of)).filter(|of| of.number() == Some(id))?;
    }
    if let Some(error) = json::get(data, "error").filter(|raw| *raw != b"null") {
        return Some(Said::Error(RpcError::loosely(error)));
    }
    let result = json::get(data, "result").filter(|raw| raw.starts_with(b"{"));
    Some(Said::Result(result.map_or_else(|| data.clone(), |raw| data.slice_ref(raw))))
}

impl Fragments {
    /// Takes the contents of a part behind those before it.
    fn push(&mut self, said: &[u8]) -> Result<(), Unjoined> {
        self.beside.clear();
        json::others(said, &["content"], &mut self.beside);
        for content in contents(said) {
            let comma = if self.contents.is_empty() { 0 } else { 1 };
            if self.contents.len() + self.beside.len() + content.len() + comma > self.max {
                let max = self.max;
                return Err(Unjoined::TooLong(format!(
                    "its parts have more than {max} bytes, the limit set by `max_response`"
                )));
            }
            let lost = |why: Spent| Unjoined::NoRoom(why);
            self.contents.push(&b","[..comma]).and_then(|()| self.contents.push(&content)).map_err(lost)?;
        }
        Ok(())
    }
}

/// The contents of a part: those of a result, a list of them, or a text.
fn contents(said: &[u8]) -> Vec<Vec<u8>> {
    let of_text = |text: &[u8]| [b"{\"type\":\"text\",\"text\":", text, b"}"].concat();
    let quoted = |raw: &[u8]| match raw.first() {
        Some(b'"') if json::document(raw).is_ok() => of_text(raw),
        _ => of_text(json::quote(&String::from_utf8_lossy(raw)).as_bytes()),
    };
    let content = if said.starts_with(b"{") { json::get(said, "content") } else { Some(said) };
    match (content, json::get(said, "type")) {
        (Some(list), _) if list.starts_with(b"[") => match json::elements(list) {
            Ok(places) => places.into_iter().map(|place| list[place].to_vec()).collect(),
            Err(_) => vec![quoted(list)],
        },
        (Some(content), _) if content.starts_with(b"{") => vec![content.to_vec()],
        (Some(text), _) => vec![quoted(text)],
        // A content by itself.
        (None, Some(_)) => vec![said.to_vec()],
        (None, None) => json::get(said, "text").map(quoted).into_iter().collect(),
    }
}

/// The answer: what its end says, with the contents of its parts where that has none.
fn whole(parts: Option<Box<Fragments>>, said: &Bytes) -> Body {
    let is_object = said.starts_with(b"{");
    let is_whole =
        json::get(said, "content").is_some_and(|list| list.starts_with(b"[") && (parts.is_none() || list.len() > 2));
    if is_object && is_whole {
        return result(said.clone());
    }
    let (contents, beside) = parts.map(|mut parts| (parts.contents.take(), parts.beside)).unwrap_or_default();
    let mut out = [b"{\"content\":[", &contents[..], b"]"].concat();
    match is_object && said.len() > 2 {
        true => json::others(said, &["content"], &mut out),
        false => out.extend_from_slice(&beside),
    }
    out.push(b'}');
    result(out.into())
}

fn result(raw: Bytes) -> Body {
    Object::parse(raw.clone()).map_or(Body::Odd(raw), Body::Result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::account::Kind;
    use crate::memory::budget::Budget;

    fn event(name: &'static str, data: &'static str) -> SseEvent {
        SseEvent { name: name.into(), data: data.into(), ..SseEvent::default() }
    }

    /// What these events come to, with room for so many bytes of parts.
    fn read(events: &[(&'static str, &'static str)], max: usize) -> Option<Result<String, String>> {
        let mut parts = None;
        let room = || Gather::new(&Budget::new(64 << 20), Kind::Line, 1 << 20);
        let answer = events.iter().find_map(|(name, data)| take(&mut parts, &event(name, data), 7, (max, room)))?;
        Some(match answer {
            Ok(Body::Result(result)) => Ok(String::from_utf8(result.raw().to_vec()).unwrap()),
            Ok(Body::Error(raw)) => Err(String::from_utf8(raw.to_vec()).unwrap()),
            Ok(other) => panic!("{other:?}"),
            Err(Unjoined::TooLong(why)) => Err(why),
            Err(Unjoined::NoRoom(why)) => panic!("{why}"),
        })
    }

    #[test]
    fn parts_are_joined_by_the_end_that_has_no_contents_of_its_own() {
        let (a, b) = (r#"{"type":"text","text":"a"}"#, r#"{"type":"text","text":"b"}"#);
        let joined = |rest: &str| Some(Ok(format!(r#"{{"content":[{a},{b}]{rest}}}"#)));
        let first = ("result", r#"{"content":[{"type":"text","text":"a"}]}"#);
        let second =
            ("result", r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"b"}],"isError":false}}"#);
        for (end, expected) in [
            (r#"{}"#, joined(",\"isError\":false")),
            ("", joined(",\"isError\":false")),
            (r#"{"isError":true}"#, joined(",\"isError\":true")),
            (r#"{"jsonrpc":"2.0","id":7,"result":{"content":[]}}"#, joined("")),
            (r#"{"id":7,"result":{"content":[1],"x":2}}"#, Some(Ok(r#"{"content":[1],"x":2}"#.to_owned()))),
            (r#"{"id":8,"result":{"content":[1]}}"#, None),
        ] {
            assert_eq!(read(&[first, second, ("complete", end)], 1000), expected, "{end}");
        }
        assert_eq!(read(&[first, second], 1000), None, "no part ends the answer");
        let texts = [("result", "a"), ("result", "\"b\""), ("complete", "{}")];
        assert_eq!(read(&texts, 1000), joined(""), "a part may be a mere text");
        assert_eq!(
            read(&[("result", a), ("result", "{\"text\":\"b\"}"), ("complete", "{}")], 1000),
            joined(",\"text\":\"b\"")
        );
        assert_eq!(read(&[("complete", "{}")], 1000), Some(Ok(r#"{"content":[]}"#.to_owned())));
        assert_eq!(read(&[("heartbeat", "{}"), ("message", "{}")], 1000), None);
    }

    #[test]
    fn an_error_ends_the_answer_whatever_it_has_of_one() {
        let part = ("result", r#"{"content":[]}"#);
        for (name, data, expected) in [
            (
                "error",
                r#"{"jsonrpc":"2.0","id":7,"error":{"code":-5,"message":"no"}}"#,
                r#"{"code":-5,"message":"no"}"#,
            ),
            ("error", r#"{"code":-5,"message":"no"}"#, r#"{"code":-5,"message":"no"}"#),
            ("error", r#"{"message":"no"}"#, r#"{"code":-32000,"message":"no"}"#),
            ("error", "no", r#"{"code":-32000,"message":"no"}"#),
            ("complete", r#"{"id":7,"error":"no"}"#, r#"{"code":-32000,"message":"no"}"#),
        ] {
            assert_eq!(read(&[part, (name, data)], 1000), Some(Err(expected.to_owned())), "{data}");
        }
    }

    #[test]
    fn parts_have_a_limit_together() {
        let part = ("result", r#"{"content":[{"type":"text","text":"12345678901234567890"}]}"#);
        assert_eq!(read(&[part; 2], 100), None);
        let said = read(&[part; 3], 100).unwrap().unwrap_err();
        assert!(said.contains("more than 100 bytes, the limit set by `max_response`"), "{said}");
    }
}
