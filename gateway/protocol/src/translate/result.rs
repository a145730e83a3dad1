//! Final results: their contents in the receiver's words, and what stateless revisions say around them.

use super::edit::Fate;
use super::{blocks, edit, structured};
use crate::frame::Method;
use crate::json;
use crate::meta::SERVER_INFO;
use crate::revision::{Features, Gap, Part, Revision};
use crate::value::{Edit, Key, Object};
use bytes::BufMut;
use smallvec::SmallVec;

const GAIN: [(Key, Edit<'static>); 1] = [(Key::ResultType, Edit::Set(b"\"complete\""))];
const GAIN_CACHEABLE: [(Key, Edit<'static>); 3] = [
    (Key::ResultType, Edit::Set(b"\"complete\"")),
    (Key::TtlMs, Edit::Set(b"0")),
    (Key::CacheScope, Edit::Set(b"\"private\"")),
];
const LOSE: [(Key, Edit<'static>); 3] =
    [(Key::ResultType, Edit::Drop), (Key::TtlMs, Edit::Drop), (Key::CacheScope, Edit::Drop)];

/// A `_meta`, which is short as a rule.
type MetaText = SmallVec<[u8; 256]>;

/// How many bytes [`write_result`] adds to those of the result and of who answers, at most.
pub const RESULT_ADDS: usize = 1024;

/// Writes a final result, as [`result`] left it, for a peer of revision `to`; `identity` is what a stateless peer is told of who
/// answers, raw.
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
        (true, meta) => Some(with_identity(meta.and_then(without_server_info), identity)),
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

/// The result with its contents in the receiver's words; `None` where they stay as they are.
pub fn result(method: &Method, result: &Object, from: Revision, to: Revision) -> Option<Object> {
    if from == to {
        return None;
    }
    let lost = Gap::between(Part::Result, method, from, to).lost;
    let written = match method {
        Method::ToolsCall => tool(result, lost)?,
        _ if lost.is_empty() => return None,
        Method::PromptsGet => within(result, "messages", |raw| blocks::messages(raw, lost))?,
        Method::ResourcesRead => within(result, "contents", |raw| blocks::contents(raw, lost))?,
        _ => return None,
    };
    Object::parse(written.into()).ok()
}

/// How many bytes are there at once, at most, while a result is brought into the receiver's words and written, beside the result itself.
/// As many as the result has, where it stays as it is.
pub fn composed_max(method: &Method, result: &Object, from: Revision, to: Revision) -> usize {
    let bytes = result.raw().len();
    let lost = Gap::between(Part::Result, method, from, to).lost;
    let list = match method {
        Method::ToolsCall => result.get(Key::Content),
        Method::PromptsGet => result.find("messages"),
        Method::ResourcesRead => result.find("contents"),
        _ => return bytes,
    };
    if from == to || lost.is_empty() && list.is_some() {
        return bytes;
    }
    let list = list.unwrap_or(b"[]");
    let words = if *method == Method::ToolsCall { structured::words_max(result, list, lost) } else { 0 };
    let gone = structured::gone_len(result, lost);
    // The result in the receiver's words.
    let told = bytes - gone + words;
    match (blocks::may_change(list, lost), words + gone > 0) {
        // What each block becomes, these as one, and the result with them.
        (true, _) => 3 * told,
        // The contents with the words beside the result with them; then that and the same as it is written.
        (false, true) => 2 * told,
        (false, false) => bytes,
    }
}

/// A tool's result: its blocks, and what becomes of its structured part.
fn tool(result: &Object, lost: Features) -> Option<Vec<u8>> {
    let content = match result.get(Key::Content) {
        Some(content) => content,
        // A task has no content yet.
        None if result.find("task").is_some() || result.find("taskId").is_some() => return None,
        None => b"[]",
    };
    let blocks = blocks::list(content, lost);
    let gone = structured::gone(result, content, lost);
    let said = gone.as_ref().and_then(|gone| gone.said);
    let content = match (blocks, said) {
        (None, None) if result.get(Key::Content).is_some() => None,
        (blocks, None) => Some(blocks.unwrap_or_else(|| content.to_vec())),
        (blocks, Some(said)) => Some(edit::append_words(blocks.as_deref().unwrap_or(content), said)),
    };
    let mut edits: SmallVec<[(Key, Edit<'_>); 2]> = SmallVec::new();
    edits.extend(content.as_ref().map(|content| (Key::Content, Edit::Set(content))));
    edits.extend(gone.map(|_| (Key::StructuredContent, Edit::Drop)));
    (!edits.is_empty()).then(|| result.with(&edits).into())
}

fn within(result: &Object, key: &str, change: impl Fn(&[u8]) -> Option<Vec<u8>>) -> Option<Vec<u8>> {
    let changed = change(result.find(key)?)?;
    let mut changed = Some(changed);
    edit::members(result.raw(), |name, _| match name == key {
        true => changed.take().map_or(Fate::Goes, Fate::Becomes),
        false => Fate::Stays,
    })
}

/// The rest of a result's `_meta`, and us as who answers.
fn with_identity(rest: Option<MetaText>, identity: &[u8]) -> MetaText {
    let mut out = MetaText::with_capacity(rest.as_ref().map_or(0, MetaText::len) + identity.len() + 48);
    out.extend_from_slice(b"{\"");
    out.extend_from_slice(SERVER_INFO.as_bytes());
    out.extend_from_slice(b"\":");
    out.extend_from_slice(identity);
    if let Some(rest) = rest {
        out.push(b',');
        out.extend_from_slice(&rest[1..]);
    } else {
        out.push(b'}');
    }
    out
}

/// A result's `_meta` without the name of who answered, which belongs to one hop; `None` where nothing is left.
fn without_server_info(meta: &[u8]) -> Option<MetaText> {
    let mut kept = MetaText::with_capacity(meta.len());
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
fn is_cacheable(method: &Method) -> bool {
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
