//! The one translator: a payload of one revision in the words of another. Equal revisions are never looked into.

use super::error::{INVALID_PARAMS, RESOURCE_NOT_FOUND, RpcError, URL_ELICITATION_REQUIRED};
use super::json;
use super::meta::SERVER_INFO;
use super::method::Method;
use super::object::{Edit, Key, Object};
use super::revision::Revision;
use bytes::BufMut;
use smallvec::SmallVec;
use std::borrow::Cow;

const GAIN: [(Key, Edit<'static>); 1] = [(Key::ResultType, Edit::Set(b"\"complete\""))];
const GAIN_CACHEABLE: [(Key, Edit<'static>); 3] = [
    (Key::ResultType, Edit::Set(b"\"complete\"")),
    (Key::TtlMs, Edit::Set(b"0")),
    (Key::CacheScope, Edit::Set(b"\"private\"")),
];
const LOSE: [(Key, Edit<'static>); 3] =
    [(Key::ResultType, Edit::Drop), (Key::TtlMs, Edit::Drop), (Key::CacheScope, Edit::Drop)];

/// Writes a final result for a peer of revision `to`; `identity` is what a stateless peer is told of who answers, raw.
pub fn write_result<B: BufMut>(
    method: &Method,
    result: &Object,
    (from, to): (Revision, Revision),
    identity: &[u8],
    out: &mut B,
) {
    if !from.is_modern() && !to.is_modern() {
        return out.put_slice(result.raw());
    }
    let meta = match (to.is_modern(), result.get(Key::Meta)) {
        (true, meta) => Some(with_identity(meta.unwrap_or(b"{}"), identity)),
        (false, Some(meta)) => Some(without_server_info(meta).unwrap_or_default()),
        (false, None) => None,
    };
    let gain = if is_cacheable(method) { &GAIN_CACHEABLE[..] } else { &GAIN };
    let mut edits: SmallVec<[(Key, Edit<'_>); 4]> = if !to.is_modern() {
        LOSE[..].into()
    } else if from.is_modern() {
        // A stateless peer that left one out meant the default.
        gain.iter().copied().filter(|(key, _)| result.get(*key).is_none()).collect()
    } else {
        // What a legacy peer put under these names meant something else, or nothing.
        gain.into()
    };
    match &meta {
        Some(meta) if meta.is_empty() => edits.push((Key::Meta, Edit::Drop)),
        Some(meta) => edits.push((Key::Meta, Edit::Set(meta))),
        None => {}
    }
    result.write(&edits, out);
}

/// A result's `_meta` that names us as who answers, whoever was named before.
fn with_identity(meta: &[u8], identity: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(meta.len() + identity.len() + 48);
    out.extend_from_slice(b"{\"");
    out.extend_from_slice(SERVER_INFO.as_bytes());
    out.extend_from_slice(b"\":");
    out.extend_from_slice(identity);
    if let Some(rest) = without_server_info(meta) {
        out.push(b',');
        out.extend_from_slice(&rest[1..]);
    } else {
        out.push(b'}');
    }
    out
}

/// A result's `_meta` without the name of who answered, which belongs to one hop; `None` where nothing is left.
pub fn without_server_info(meta: &[u8]) -> Option<Vec<u8>> {
    let mut kept = Vec::with_capacity(meta.len());
    for member in json::Members::of(meta).ok()?.flatten() {
        if json::unquote(&meta[member.start..member.key_end]).as_deref() != Some(SERVER_INFO) {
            kept.push(if kept.is_empty() { b'{' } else { b',' });
            kept.extend_from_slice(&meta[member.start..member.end]);
        }
    }
    kept.push(b'}');
    (kept.len() > 1).then_some(kept)
}

/// The results that carry `ttlMs` and `cacheScope`.
pub fn is_cacheable(method: &Method) -> bool {
    matches!(
        method,
        Method::Discover
            | Method::ToolsList
            | Method::ResourcesList
            | Method::TemplatesList
            | Method::PromptsList
            | Method::ResourcesRead
    )
}

/// An upstream's error on its way to a peer of revision `to`; `asked` is the URI that was read, in the caller's words.
pub fn error(error: &RpcError, asked: Option<&str>, from: Revision, to: Revision) -> RpcError {
    match (from.is_modern(), to.is_modern(), error.code()) {
        (false, true, Some(RESOURCE_NOT_FOUND | URL_ELICITATION_REQUIRED)) => recode(error, INVALID_PARAMS),
        (true, false, Some(INVALID_PARAMS)) if asked.is_some() && names(error, asked) => {
            recode(error, RESOURCE_NOT_FOUND)
        }
        _ => error.clone(),
    }
}

/// Whether an error's `data.uri` is the URI that was asked for: then it says that the resource is missing.
fn names(error: &RpcError, asked: Option<&str>) -> bool {
    error.data().and_then(|data| json::get(data, "uri")).and_then(json::unquote).as_deref() == asked
}

fn recode(error: &RpcError, code: i64) -> RpcError {
    let data = error.data().map(|data| String::from_utf8_lossy(data).into_owned());
    RpcError::new(code, &error.message().unwrap_or_default(), data.as_deref())
}

/// The parameters of a call, or of a notice on a call's stream, on their way to a peer of revision `to`.
pub fn params(method: &Method, params: &Object, from: Revision, to: Revision) -> Object {
    let written = match method {
        // The oldest revision's progress has no words.
        Method::Progress if from != to && to == Revision::V2024_11_05 => without(params.raw(), &["message"]),
        // What only stateless callers can say means nothing to an upstream that asks live.
        _ if from.is_modern() && !to.is_modern() && is_retry(params) => {
            params.with(&[(Key::InputResponses, Edit::Drop), (Key::RequestState, Edit::Drop)]).into()
        }
        _ => return params.clone(),
    };
    Object::parse(written.into()).unwrap_or_else(|_| params.clone())
}

/// A question on its way to a peer of revision `to`, live or embedded; `None` where that peer cannot be asked this.
pub fn question(_method: &Method, params: &Object, _from: Revision, _to: Revision) -> Option<Object> {
    Some(params.clone())
}

/// The answer to a question on its way back to a peer of revision `to`; `None` where that peer cannot be told this.
pub fn answer(_method: &Method, result: &Object, _from: Revision, _to: Revision) -> Option<Object> {
    Some(result.clone())
}

fn is_retry(params: &Object) -> bool {
    params.get(Key::InputResponses).is_some() || params.get(Key::RequestState).is_some()
}

/// A tool, resource, template or prompt on its way to a peer of revision `to`.
pub fn definition(raw: &[u8], from: Revision, to: Revision) -> Cow<'_, [u8]> {
    if from == to {
        return Cow::Borrowed(raw);
    }
    // Members that came later than the receiver, or went before it.
    let (is_tool, mut foreign) = (json::get(raw, "inputSchema").is_some(), Vec::new());
    if to == Revision::V2024_11_05 && is_tool {
        foreign.push("annotations");
    }
    if to < Revision::V2025_06_18 {
        foreign.extend(["title", "outputSchema", "_meta"]);
    }
    if to < Revision::V2025_11_25 {
        foreign.push("icons");
    }
    if to != Revision::V2025_11_25 {
        foreign.push("execution");
    }
    if foreign.iter().any(|key| json::get(raw, key).is_some()) {
        return Cow::Owned(without(raw, &foreign));
    }
    Cow::Borrowed(raw)
}

/// The object without some members.
fn without(raw: &[u8], keys: &[&str]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(raw.len());
    for member in json::Members::of(raw).into_iter().flatten().flatten() {
        if !json::unquote(&raw[member.start..member.key_end]).is_some_and(|key| keys.contains(&&*key)) {
            kept.push(if kept.is_empty() { b'{' } else { b',' });
            kept.extend_from_slice(&raw[member.start..member.end]);
        }
    }
    if kept.is_empty() {
        kept.push(b'{');
    }
    kept.push(b'}');
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use Revision as R;
    use bytes::Bytes;

    fn object(text: &str) -> Object {
        Object::parse(Bytes::copy_from_slice(text.as_bytes())).unwrap()
    }

    fn translated(method: Method, raw: &str, from: Revision, to: Revision) -> Bytes {
        let mut out = Vec::new();
        write_result(&method, &object(raw), (from, to), b"{\"name\":\"t\"}", &mut out);
        out.into()
    }

    #[test]
    fn legacy_to_legacy_is_byte_for_byte() {
        let raw = r#"{ "content":[], "resultType":7 }"#;
        assert_eq!(translated(Method::ToolsCall, raw, R::V2024_11_05, R::V2025_11_25), raw);
    }

    #[test]
    fn results_gain_and_lose_what_stateless_revisions_add() {
        let us = r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"t"}"#;
        assert_eq!(
            translated(Method::ToolsList, r#"{"tools":[]}"#, R::V2024_11_05, R::V2026_07_28),
            format!(r#"{{"resultType":"complete","ttlMs":0,"cacheScope":"private",{us}}},"tools":[]}}"#)
        );
        let meta =
            r#"{"resultType":"complete","content":[1e400],"_meta":{"io.modelcontextprotocol/serverInfo":{},"a/b":1}}"#;
        assert_eq!(
            translated(Method::ToolsCall, meta, R::V2026_07_28, R::V2025_03_26),
            r#"{"content":[1e400],"_meta":{"a/b":1}}"#
        );
        assert_eq!(
            translated(Method::ToolsCall, meta, R::V2026_07_28, R::V2026_07_28),
            format!(r#"{{"resultType":"complete","content":[1e400],{us},"a/b":1}}}}"#)
        );
        let only = r#"{"content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{}}}"#;
        assert_eq!(translated(Method::ToolsCall, only, R::V2026_07_28, R::V2025_03_26), r#"{"content":[]}"#);
        assert_eq!(
            translated(Method::ToolsCall, r#"{"resultType":"mine"}"#, R::V2025_06_18, R::V2026_07_28),
            format!(r#"{{{us}}},"resultType":"complete"}}"#)
        );
    }

    #[test]
    fn a_missing_resource_is_said_in_the_receivers_code() {
        let legacy = RpcError::new(RESOURCE_NOT_FOUND, "no", Some(r#"{"uri":"a:b"}"#));
        let modern = error(&legacy, Some("a:b"), R::V2025_11_25, R::V2026_07_28);
        assert_eq!((modern.code(), modern.data()), (Some(INVALID_PARAMS), Some(&br#"{"uri":"a:b"}"#[..])));
        assert_eq!(error(&modern, Some("a:b"), R::V2026_07_28, R::V2025_11_25).code(), Some(RESOURCE_NOT_FOUND));
        assert_eq!(error(&modern, Some("a:c"), R::V2026_07_28, R::V2025_11_25).code(), Some(INVALID_PARAMS));
        assert_eq!(error(&legacy, None, R::V2025_11_25, R::V2024_11_05), legacy);
    }

    #[test]
    fn a_definition_has_only_what_its_receiver_knows() {
        let raw =
            br#"{"name":"a","title":"A","inputSchema":{},"annotations":{},"icons":[],"execution":{},"x":"execution"}"#;
        let to = |to| String::from_utf8(definition(raw, R::V2025_11_25, to).into_owned()).unwrap();
        assert_eq!(to(R::V2025_11_25).as_bytes(), raw);
        assert_eq!(to(R::V2024_11_05), r#"{"name":"a","inputSchema":{},"x":"execution"}"#);
        assert_eq!(to(R::V2025_03_26), r#"{"name":"a","inputSchema":{},"annotations":{},"x":"execution"}"#);
        assert_eq!(to(R::V2025_06_18), r#"{"name":"a","title":"A","inputSchema":{},"annotations":{},"x":"execution"}"#);
        let to_modern = r#"{"name":"a","title":"A","inputSchema":{},"annotations":{},"icons":[],"x":"execution"}"#;
        assert_eq!(to(R::V2026_07_28), to_modern);
        let resource = br#"{"uri":"a:b","annotations":{}}"#;
        assert_eq!(definition(resource, R::V2025_11_25, R::V2024_11_05), &resource[..]);
    }

    #[test]
    fn the_oldest_progress_has_no_words() {
        let notice = object(r#"{"progressToken":1,"progress":2,"message":"m"}"#);
        let old = params(&Method::Progress, &notice, R::V2025_11_25, R::V2024_11_05);
        assert_eq!(old.raw(), r#"{"progressToken":1,"progress":2}"#);
        assert_eq!(params(&Method::Progress, &notice, R::V2026_07_28, R::V2025_03_26).raw(), notice.raw());
    }
}
