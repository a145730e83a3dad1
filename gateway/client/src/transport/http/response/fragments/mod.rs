//! An answer in parts: events `result` on the stream of a call, and the event `complete` or `error` that ends it.

use crate::memory::Gather;
use crate::memory::budget::Spent;
use crate::protocol::frame::message::{Body, Id};
use crate::protocol::frame::rpc_error::RpcError;
use crate::protocol::framing::sse::SseEvent;
use crate::protocol::json::{self, Fault};
use crate::protocol::payload::loose;
use crate::protocol::value::Object;
use crate::runtime::aside;
use bytes::Bytes;

/// Members of an envelope, which are no part of what is in it.
const ENVELOPE: [&str; 4] = ["id", "jsonrpc", "result", "error"];

/// The parts of one answer.
#[derive(Debug)]
pub(crate) struct Fragments {
    /// Their contents, raw, joined by commas.
    contents: Gather,
    /// The structured content that was said last.
    structured: Gather,
    /// Whether it has failed: what the last of them says, or one before it that said so.
    failed: Option<bool>,
    /// What the last of them says besides: members.
    beside: Gather,
    /// The most bytes of all of it.
    max: usize,
}

/// Why parts are not put together.
#[derive(Debug)]
pub(crate) enum Unjoined {
    /// They have more than there may be.
    TooLong(String),
    /// One of them cannot be read.
    Unreadable(String),
    /// There is no memory for them.
    NoRoom(Spent),
}

/// What an event says.
enum Said {
    Result(Bytes),
    Error(RpcError),
    Unreadable(Fault),
}

/// Takes an event of another name than a message has; the answer to the request `id` where it ends that. `parts` are those before it,
/// which are put together in `room`, up to `max` bytes.
pub(crate) fn take(
    parts: &mut Option<Box<Fragments>>,
    event: &SseEvent,
    id: u64,
    (max, room): (usize, impl Fn() -> Gather),
) -> Option<Result<Body, Unjoined>> {
    if !matches!(&event.name[..], b"result" | b"complete" | b"error") {
        return None;
    }
    let is_error = event.name == b"error"[..];
    aside(event.data.len(), || {
        let said = match said(&event.data, id)? {
            Said::Error(error) => return Some(Ok(Body::Error(error.raw().clone()))),
            Said::Unreadable(why) if !is_error => {
                return Some(Err(Unjoined::Unreadable(format!("a part of its answer cannot be read: {why}"))));
            }
            Said::Unreadable(_) => event.data.clone(),
            Said::Result(said) => said,
        };
        match &event.name[..] {
            b"error" => Some(Ok(Body::Error(RpcError::loosely(&said).raw().clone()))),
            b"complete" => Some(Ok(whole(parts.take(), &said))),
            _ => {
                let none = || {
                    let (contents, structured, beside) = (room(), room(), room());
                    Box::new(Fragments { contents, structured, failed: None, beside, max })
                };
                parts.get_or_insert_with(none).push(&said).err().map(Err)
            }
        }
    })
}

/// What the data of an event says: of a JSON-RPC message the result or the error. None where that is of another request.
fn said(data: &Bytes, id: u64) -> Option<Said> {
    let text = data.slice_ref(data.trim_ascii());
    match (json::document(data), text.first()) {
        (Ok(_), Some(b'{')) => {}
        (Ok(_), Some(b'[' | b'"')) => return Some(Said::Result(text)),
        (Err(why), Some(b'{')) => return Some(Said::Unreadable(why)),
        // The blanks of a mere text are its own.
        _ => return Some(Said::Result(data.clone())),
    }
    let member = |key| json::get(&text, key).filter(|raw| *raw != b"null");
    if let Some(of) = member("id") {
        Id::from_raw(text.slice_ref(of)).filter(|of| of.number() == Some(id))?;
    }
    let (result, has_content) = (member("result"), member("content").is_some());
    if let Some(error) = member("error").filter(|raw| *raw != b"false" || result.is_none() && !has_content) {
        return Some(Said::Error(RpcError::loosely(error)));
    }
    let is_message = ["id", "jsonrpc"].iter().any(|key| json::get(&text, key).is_some());
    Some(Said::Result(match result {
        Some(raw) if raw.starts_with(b"{") => text.slice_ref(raw),
        Some(raw) if !has_content => loose::result(raw).into(),
        _ if is_message => opened(&text),
        _ => text,
    }))
}

/// What is in an envelope, without that.
fn opened(text: &[u8]) -> Bytes {
    let mut rest = Vec::with_capacity(text.len());
    json::others(text, &ENVELOPE, &mut rest);
    match rest.first_mut() {
        Some(comma) => *comma = b'{',
        None => rest.push(b'{'),
    }
    rest.push(b'}');
    rest.into()
}

/// What a piece belongs to.
#[derive(Clone, Copy)]
enum Of {
    Contents,
    Structured,
    Beside,
}

impl Fragments {
    /// Takes the contents of a part behind those before it. Nothing that earlier parts have said is copied again.
    fn push(&mut self, said: &[u8]) -> Result<(), Unjoined> {
        let has = |key: &str| json::get(said, key).is_some();
        // Of a content by itself nothing is beside it.
        let is_lone = !has("content") && (has("type") || has("text"));
        if let Some(structured) = json::get(said, "structuredContent") {
            self.structured.clear();
            self.put(Of::Structured, structured)?;
        }
        self.failed = match json::get(said, "isError") {
            Some(b"true") => Some(true),
            Some(b"false") => Some(false),
            Some(_) => None,
            None => self.failed.filter(|failed| *failed),
        };
        self.beside.clear();
        for member in json::Members::of(said).into_iter().flatten().flatten() {
            let (key, value) = (member.key(said).unwrap_or_default(), &said[member.value..member.end]);
            let is_kept = match &key[..] {
                b"content" | b"structuredContent" => false,
                b"isError" => !matches!(value, b"true" | b"false"),
                _ => !is_lone,
            };
            if is_kept {
                self.put(Of::Beside, b",")?;
                self.put(Of::Beside, &said[member.start..member.end])?;
            }
        }
        for content in contents(said) {
            if !self.contents.is_empty() {
                self.put(Of::Contents, b",")?;
            }
            self.put(Of::Contents, &content)?;
        }
        Ok(())
    }

    fn put(&mut self, of: Of, piece: &[u8]) -> Result<(), Unjoined> {
        let Self { contents, structured, beside, max, .. } = self;
        if contents.len() + structured.len() + beside.len() + piece.len() > *max {
            let why = format!("its parts have more than {max} bytes, the limit set by `max_response`");
            return Err(Unjoined::TooLong(why));
        }
        let into = match of {
            Of::Contents => contents,
            Of::Structured => structured,
            Of::Beside => beside,
        };
        into.push(piece).map_err(Unjoined::NoRoom)
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
        // What only begins like a list is a text, and so is one that is no UTF-8.
        (Some(list), _) if list.starts_with(b"[") && json::document(list).is_ok() => {
            json::elements(list).into_iter().flatten().map(|place| list[place].to_vec()).collect()
        }
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
    let own = json::get(said, "content").filter(|list| list.starts_with(b"[") && (parts.is_none() || list.len() > 2));
    // What the end mentions holds, and what it does not stays.
    let stays = |key: &str| !is_object || json::get(said, key).is_none();
    let (contents, structured, failed, beside) = parts
        .map(|mut parts| (parts.contents.take(), parts.structured.take(), parts.failed, parts.beside.take()))
        .unwrap_or_default();
    if is_object && own.is_some() && !(failed == Some(true) && stays("isError")) {
        return result(said.clone());
    }
    let contents = own.map_or(&contents[..], |list| &list[1..list.len() - 1]);
    let mut out = [b"{\"content\":[", contents, b"]"].concat();
    let is_said = is_object && said.len() > 2;
    if is_said {
        json::others(said, &["content"], &mut out);
    }
    match failed.filter(|failed| stays("isError") && (*failed || !is_said)) {
        Some(true) => out.extend_from_slice(b",\"isError\":true"),
        Some(false) => out.extend_from_slice(b",\"isError\":false"),
        None => {}
    }
    if !structured.is_empty() && own.is_none() && stays("structuredContent") {
        out.extend_from_slice(b",\"structuredContent\":");
        out.extend_from_slice(&structured);
    }
    if !is_said {
        out.extend_from_slice(&beside);
    }
    out.push(b'}');
    result(out.into())
}

fn result(raw: Bytes) -> Body {
    Object::parse(raw.clone()).map_or(Body::Odd(raw), Body::Result)
}

#[cfg(test)]
mod tests;
