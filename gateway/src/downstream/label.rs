//! Says in a question which upstream asks it: the person sees many programs through one gateway.

use crate::protocol::error::{RpcError, URL_ELICITATION_REQUIRED};
use crate::protocol::{Method, Object, json};
use bytes::Bytes;

/// Whether questions are labelled; where nobody else could be asking they pass as they are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Label(pub(super) bool);

impl Label {
    /// A question's parameters with the upstream named at the beginning of what the person reads.
    pub(super) fn put(self, upstream: &str, method: &Method, params: Object) -> Object {
        if !self.0 || *method != Method::Elicitation {
            return params;
        }
        match message(params.raw()) {
            Some(at) => parsed(labelled(params.raw(), &[at], upstream), params),
            None => params,
        }
    }

    /// As [`Self::put`], for all pages that an error wants visited first.
    pub(super) fn put_pages(self, upstream: &str, error: RpcError) -> RpcError {
        if !self.0 || error.code() != Some(URL_ELICITATION_REQUIRED) {
            return error;
        }
        let places = required(error.raw()).unwrap_or_default();
        if places.is_empty() { error } else { RpcError::from_raw(labelled(error.raw(), &places, upstream)) }
    }

    /// As [`Self::put`], for all questions that are embedded in an `input_required` result.
    pub(super) fn put_all(self, upstream: &str, result: Object) -> Object {
        if !self.0 {
            return result;
        }
        let raw = result.raw();
        let places = embedded(raw).unwrap_or_default();
        if places.is_empty() { result } else { parsed(labelled(raw, &places, upstream), result) }
    }
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

/// Where the messages of all elicitations in a result begin.
fn embedded(result: &[u8]) -> Option<Vec<usize>> {
    let requests = place(result, "inputRequests")?;
    let end = json::value(result, requests).ok()?;
    let mut places = Vec::new();
    for member in json::Members::of(&result[requests..end]).ok()? {
        let member = member.ok()?;
        let (at, request) = (requests + member.value, &result[requests + member.value..requests + member.end]);
        let is_elicitation =
            json::get(request, "method").and_then(json::unquote).as_deref() == Some(Method::Elicitation.as_str());
        if let Some(params) = place(request, "params").filter(|_| is_elicitation) {
            let end = json::value(request, params).ok()?;
            places.extend(message(&request[params..end]).map(|text| at + params + text));
        }
    }
    Some(places)
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

/// The text with the upstream's name put in at these places.
fn labelled(raw: &[u8], places: &[usize], upstream: &str) -> Bytes {
    let name = json::quote(upstream);
    let name = &name[1..name.len() - 1];
    let mut out = Vec::with_capacity(raw.len() + places.len() * (name.len() + 3));
    let mut from = 0;
    for place in places {
        out.extend_from_slice(&raw[from..*place]);
        out.extend_from_slice(format!("[{name}] ").as_bytes());
        from = *place;
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
        for (method, text) in [(Method::Sampling, form), (Method::Elicitation, r#"{"message":7}"#)] {
            assert_eq!(put(&method, text), text);
        }
        assert_eq!(Label(false).put("a", &Method::Elicitation, object(form)).raw(), form);
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
        let expected = result.replace("\"a\"", "\"[up] a\"").replace("\"d\"", "\"[up] d\"");
        assert_eq!(put.raw(), expected.as_bytes());
        assert_eq!(Label(false).put_all("up", object(result)).raw(), result);
        let none = r#"{"requestState":"s"}"#;
        assert_eq!(Label(true).put_all("up", object(none)).raw(), none);
    }
}
