//! Says in a question which upstream asks it: the person sees many programs through one gateway.

use crate::protocol::frame::Method;
use crate::protocol::frame::rpc_error::{RpcError, URL_ELICITATION_REQUIRED};
use crate::protocol::json;
use crate::protocol::value::Object;
use bytes::Bytes;
use std::ops::Range;

/// The `_meta` key that says to a program who asks, where no person reads the words.
const UPSTREAM: &str = "trunkline/upstream";

/// Whether questions are labelled; where nobody else could be asking they pass as they are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Label(pub(crate) bool);

/// A text that takes the place of another.
struct Splice {
    at: Range<usize>,
    text: Vec<u8>,
}

impl Label {
    /// A question's parameters with the upstream named: at the beginning of what the person reads, or else in `_meta`.
    pub(crate) fn put(self, upstream: &str, method: &Method, params: Object) -> Object {
        match labelled_params(upstream, method, params.raw(), 0).filter(|_| self.0) {
            Some(splice) => parsed(spliced(params.raw(), vec![splice]), params),
            None => params,
        }
    }

    /// As [`Self::put`], for all pages that an error wants visited first.
    pub(crate) fn put_pages(self, upstream: &str, error: RpcError) -> RpcError {
        if !self.0 || error.code() != Some(URL_ELICITATION_REQUIRED) {
            return error;
        }
        let places = required(error.raw()).unwrap_or_default();
        let splices: Vec<_> = places.into_iter().map(|at| spoken(upstream, at)).collect();
        if splices.is_empty() { error } else { RpcError::from_raw(spliced(error.raw(), splices)) }
    }

    /// As [`Self::put`], for all questions that are embedded in an `input_required` result.
    pub(crate) fn put_all(self, upstream: &str, result: Object) -> Object {
        if !self.0 {
            return result;
        }
        let raw = result.raw();
        let splices = embedded(upstream, raw).unwrap_or_default();
        if splices.is_empty() { result } else { parsed(spliced(raw, splices), result) }
    }
}

/// What names the upstream in the parameters of a question, which begin at `base` of a longer text.
fn labelled_params(upstream: &str, method: &Method, params: &[u8], base: usize) -> Option<Splice> {
    match method {
        Method::Elicitation => message(params).map(|at| spoken(upstream, base + at)),
        Method::Sampling | Method::RootsList => {
            let mut meta = format!("{{\"{UPSTREAM}\":{}", json::quote(upstream)).into_bytes();
            let Some(at) = place(params, "_meta") else {
                meta.extend_from_slice(if is_bare(params) { b"}" } else { b"}," });
                let text = [b"\"_meta\":", &meta[..]].concat();
                return Some(Splice { at: base + 1..base + 1, text });
            };
            let end = json::value(params, at).ok()?;
            json::others(&params[at..end], &[UPSTREAM], &mut meta);
            meta.push(b'}');
            Some(Splice { at: base + at..base + end, text: meta })
        }
        _ => None,
    }
}

/// The upstream's name, for a person, at the beginning of a text.
fn spoken(upstream: &str, at: usize) -> Splice {
    let name = json::quote(upstream);
    Splice { at: at..at, text: format!("[{}] ", &name[1..name.len() - 1]).into() }
}

/// Whether an object has no members.
fn is_bare(object: &[u8]) -> bool {
    object[1..].trim_ascii_start().starts_with(b"}")
}

/// Where the text of `message` begins.
fn message(params: &[u8]) -> Option<usize> {
    place(params, "message").filter(|at| params[*at] == b'"').map(|at| at + 1)
}

/// Where the messages of all pages in an error begin.
fn required(error: &[u8]) -> Option<Vec<usize>> {
    let data = place(error, "data")?;
    let pages = data + place(&error[data..json::value(error, data).ok()?], "elicitations")?;
    let raw = &error[pages..json::value(error, pages).ok()?];
    let items = json::elements(raw).ok()?;
    Some(items.into_iter().filter_map(|item| Some(pages + item.start + message(&raw[item])?)).collect())
}

/// What names the upstream in all questions of a result.
fn embedded(upstream: &str, result: &[u8]) -> Option<Vec<Splice>> {
    let requests = place(result, "inputRequests")?;
    let end = json::value(result, requests).ok()?;
    let mut splices = Vec::new();
    for member in json::Members::of(&result[requests..end]).ok()? {
        let member = member.ok()?;
        let (at, request) = (requests + member.value, &result[requests + member.value..requests + member.end]);
        let Some(method) = json::get(request, "method").and_then(json::unquote) else { continue };
        let method = Method::parse(&method);
        match place(request, "params") {
            Some(params) => {
                let end = json::value(request, params).ok()?;
                splices.extend(labelled_params(upstream, &method, &request[params..end], at + params));
            }
            None if method == Method::RootsList => {
                let Splice { text, .. } = labelled_params(upstream, &method, b"{}", 0)?;
                splices.push(Splice { at: at + 1..at + 1, text: [b"\"params\":{", &text[..], b"},"].concat() });
            }
            None => {}
        }
    }
    Some(splices)
}

/// Where the value of a key begins; the last one where the key stands twice, as whoever reads it will take it.
fn place(object: &[u8], key: &str) -> Option<usize> {
    let mut found = None;
    for member in json::Members::of(object).ok()? {
        let member = member.ok()?;
        if member.key(object).as_deref() == Some(key.as_bytes()) {
            found = Some(member.value);
        }
    }
    found
}

/// The text with others in the places of its parts, which are in order.
fn spliced(raw: &[u8], splices: Vec<Splice>) -> Bytes {
    let mut out = Vec::with_capacity(raw.len() + splices.iter().map(|splice| splice.text.len()).sum::<usize>());
    let mut from = 0;
    for Splice { at, text } in splices {
        out.extend_from_slice(&raw[from..at.start]);
        out.extend_from_slice(&text);
        from = at.end;
    }
    out.extend_from_slice(&raw[from..]);
    out.into()
}

fn parsed(raw: Bytes, before: Object) -> Object {
    Object::parse(raw).unwrap_or(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(text: &'static str) -> Object {
        Object::parse(text.into()).unwrap()
    }

    #[test]
    fn forms_and_pages_say_who_asks_and_nothing_else_changes() {
        let put = |method: &Method, text| Label(true).put("a\"b", method, object(text)).raw().clone();
        let form = r#"{ "x":1e400, "message" : "Sure\u003f", "requestedSchema":{"message":"no"}}"#;
        assert_eq!(
            put(&Method::Elicitation, form),
            r#"{ "x":1e400, "message" : "[a\"b] Sure\u003f", "requestedSchema":{"message":"no"}}"#
        );
        let page = r#"{"mode":"url","url":"https://h/","message":""}"#;
        assert_eq!(put(&Method::Elicitation, page), r#"{"mode":"url","url":"https://h/","message":"[a\"b] "}"#);
        for (method, text) in [(Method::ToolsCall, form), (Method::Elicitation, r#"{"message":7}"#)] {
            assert_eq!(put(&method, text), text);
        }
        assert_eq!(Label(false).put("a", &Method::Elicitation, object(form)).raw(), form);
    }

    #[test]
    fn what_no_person_reads_says_who_asks_to_the_program() {
        for (method, text, expected) in [
            (Method::RootsList, "{}", r#"{"_meta":{"trunkline/upstream":"up"}}"#),
            (Method::RootsList, "{ }", r#"{"_meta":{"trunkline/upstream":"up"} }"#),
            (
                Method::Sampling,
                r#"{ "maxTokens":1e0,"_meta" : {"a":1, "trunkline/upstream":"another"},"z":[]}"#,
                r#"{ "maxTokens":1e0,"_meta" : {"trunkline/upstream":"up","a":1},"z":[]}"#,
            ),
            (Method::Sampling, r#"{"messages":[]}"#, r#"{"_meta":{"trunkline/upstream":"up"},"messages":[]}"#),
        ] {
            assert_eq!(Label(true).put("up", &method, object(text)).raw(), expected);
            assert_eq!(Label(false).put("up", &method, object(text)).raw(), text);
        }
    }

    #[test]
    fn pages_in_an_error_say_so_each_and_nothing_else_changes() {
        let raw = r#"{ "code":-32042, "message":"m", "data":{"message":"n","elicitations": [{"url":"u","message":"a"},7,{"message":7},{"message":"b"}]}}"#;
        let put = |label, raw: &'static str| Label(label).put_pages("up", RpcError::from_raw(raw.into())).raw().clone();
        assert_eq!(put(true, raw), raw.replace("\"a\"", "\"[up] a\"").replace("\"b\"", "\"[up] b\""));
        assert_eq!(put(false, raw), raw);
        for raw in [r#"{"code":-1,"data":{"elicitations":[{"message":"a"}]}}"#, r#"{"code":-32042,"data":[]}"#] {
            assert_eq!(put(true, raw), raw);
        }
    }

    #[test]
    fn embedded_questions_say_so_each() {
        let result = r#"{"inputRequests":{"1":{"params":{"message":"a"},"method":"elicitation/create"},
            "2":{"method":"roots/list"},"3":{"method":"sampling/createMessage","params":{"message":"c"}},
            "4":{"method":"elicitation/create","params":{"message":"d"}}},"message":"e","requestState":"s"}"#;
        let put = Label(true).put_all("up", object(result));
        let meta = r#""_meta":{"trunkline/upstream":"up"}"#;
        let expected = result
            .replace("\"a\"", "\"[up] a\"")
            .replace(r#"{"method":"roots/list"}"#, &format!(r#"{{"params":{{{meta}}},"method":"roots/list"}}"#))
            .replace(r#"{"message":"c"}"#, &format!(r#"{{{meta},"message":"c"}}"#))
            .replace("\"d\"", "\"[up] d\"");
        assert_eq!(put.raw(), expected.as_bytes());
        assert_eq!(Label(false).put_all("up", object(result)).raw(), result);
        let none = r#"{"requestState":"s"}"#;
        assert_eq!(Label(true).put_all("up", object(none)).raw(), none);
    }
}
