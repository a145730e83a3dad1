//! A list as one kind of caller sees it, encoded once: answering is a copy of bytes.

use super::entry::Entry;
use super::kind::Kind;
use super::page::{CURSOR_BYTES_MAX, Cursor, Version};
use crate::call::refusal::{Reason, Refusal};
use crate::protocol::revision::Revision;
use crate::protocol::value::Object;
use crate::protocol::{json, translate};

/// A page holds no more bytes of items than this, where it has more than one item.
const PAGE_BYTES_MAX: usize = 1 << 20;

/// A whole list in the words of one revision, page by page.
pub(crate) struct Encoded {
    kind: Kind,
    version: Version,
    pages: Vec<Object>,
}

impl Encoded {
    /// Writes the list of these entries.
    pub(crate) fn new<'a>(
        kind: Kind,
        entries: impl Iterator<Item = &'a Entry>,
        revision: Revision,
        page_size: usize,
    ) -> Self {
        let mut items = Vec::new();
        let mut pages = vec![(0, 0)];
        let mut on_page = 0;
        for entry in entries {
            let definition = translate::definition(&entry.definition, entry.revision, revision);
            let (start, end) = *pages.last().expect("there is always a page");
            if on_page > 0 && (on_page >= page_size.max(1) || end - start + definition.len() > PAGE_BYTES_MAX) {
                pages.push((items.len(), items.len()));
                on_page = 0;
            }
            if on_page > 0 {
                items.push(b',');
            }
            items.extend_from_slice(&definition);
            pages.last_mut().expect("there is always a page").1 = items.len();
            on_page += 1;
        }
        let version = if pages.len() > 1 { Version::of(&items) } else { Version::of(b"") };
        let last = pages.len() - 1;
        let written = pages.into_iter().enumerate().map(|(at, (start, end))| {
            let next = (at < last).then(|| Cursor { kind, version, page: at as u32 + 1 });
            page(kind, &items[start..end], next, revision)
        });
        Self { kind, version, pages: written.collect() }
    }

    /// The result that a raw cursor asks for.
    pub(crate) fn page(&self, cursor: Option<&[u8]>) -> Result<&Object, Refusal> {
        let Some(raw) = cursor.filter(|raw| *raw != b"null") else {
            return Ok(&self.pages[0]);
        };
        let cursor = Some(raw).filter(|raw| raw.len() <= CURSOR_BYTES_MAX).and_then(json::unquote);
        let ours = cursor.and_then(|text| Cursor::decode(&text));
        ours.filter(|cursor| cursor.kind == self.kind && cursor.version == self.version)
            .and_then(|cursor| self.pages.get(cursor.page as usize))
            .ok_or_else(|| {
                let why = "Invalid cursor: it is not of this list, or the list has changed; list again from the start";
                Refusal::new(Reason::InvalidParams, why)
            })
    }
}

fn page(kind: Kind, items: &[u8], next: Option<Cursor>, revision: Revision) -> Object {
    let mut out = Vec::with_capacity(items.len() + 160);
    out.push(b'{');
    if revision.is_modern() {
        out.extend_from_slice(b"\"resultType\":\"complete\",\"ttlMs\":0,\"cacheScope\":\"private\",");
    }
    out.extend_from_slice(format!("\"{}\":[", kind.member()).as_bytes());
    out.extend_from_slice(items);
    out.push(b']');
    if let Some(next) = next {
        out.extend_from_slice(format!(",\"nextCursor\":\"{}\"", next.encode()).as_bytes());
    }
    out.push(b'}');
    Object::parse(out.into()).unwrap_or_else(|fault| {
        debug_assert!(false, "definitions that were read are JSON: {fault}");
        Object::empty()
    })
}
