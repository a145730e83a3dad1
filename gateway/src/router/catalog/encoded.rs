//! A list as one kind of caller sees it, encoded once: answering is a copy of bytes.

use super::entry::Entry;
use super::kind::Kind;
use super::page::{CURSOR_BYTES_MAX, Cursor, Version, VersionOf};
use crate::call::refusal::{Reason, Refusal};
use crate::memory::StandingCharge;
use crate::memory::account::Kind as Counted;
use crate::memory::budget::{Budget, Charge, Spent};
use crate::protocol::revision::Revision;
use crate::protocol::value::Object;
use crate::protocol::{json, translate};
use std::sync::Arc;

/// A page holds no more bytes of items than this, where it has more than one item.
const PAGE_BYTES_MAX: usize = 1 << 20;

/// What a page takes beside its items.
const PAGE_BYTES: usize = 256;

/// A whole list in the words of one revision, page by page.
pub(crate) struct Encoded {
    kind: Kind,
    version: Version,
    pages: Vec<Object>,
    charge: Held,
}

/// An encoded list, wherever it is kept.
pub(crate) enum Listed<'a> {
    Whole(&'a Encoded),
    Granted(Arc<Encoded>),
}

impl Listed<'_> {
    /// The list itself.
    pub(crate) fn encoded(&self) -> &Encoded {
        match self {
            Self::Whole(encoded) => encoded,
            Self::Granted(encoded) => encoded,
        }
    }
}

/// How an encoded list is counted.
enum Held {
    /// With what stands: it may be kept.
    Kept { _charge: StandingCharge },
    /// While it is used: more of the kind has no room.
    Used { _charge: Charge },
}

impl Held {
    /// Counts a list of so many bytes.
    fn count(bytes: usize, budget: &Budget) -> Result<Self, Spent> {
        match budget.stand_listed(bytes) {
            Ok(charge) => Ok(Self::Kept { _charge: charge }),
            Err(_) => Ok(Self::Used { _charge: budget.charge(Counted::Answer, bytes)? }),
        }
    }
}

impl Encoded {
    /// Writes the list of these entries: first how long each page is, then page by page, so nothing is there twice.
    pub(crate) fn new<'a, I: Iterator<Item = &'a Entry>>(
        kind: Kind,
        entries: impl Fn() -> I,
        revision: Revision,
        (page_size, budget): (usize, &Budget),
    ) -> Result<Self, Spent> {
        let mut layout = vec![Layout::default()];
        let mut version = VersionOf::default();
        for entry in entries() {
            let published = entry.published();
            let definition = translate::definition(&published, entry.revision, revision);
            let page = layout.last().expect("there is always a page");
            if page.items > 0 && (page.items >= page_size.max(1) || page.bytes + definition.len() > PAGE_BYTES_MAX) {
                layout.push(Layout::default());
            }
            let page = layout.last_mut().expect("there is always a page");
            if page.items > 0 {
                version.take(b",");
                page.bytes += 1;
            }
            version.take(&definition);
            page.bytes += definition.len();
            page.items += 1;
        }
        let charge = Held::count(layout.iter().map(|page| page.bytes + PAGE_BYTES).sum(), budget)?;
        let version = if layout.len() > 1 { version.version() } else { Version::of(b"") };
        let (last, mut entries) = (layout.len() - 1, entries());
        let written = layout.into_iter().enumerate().map(|(at, page)| {
            let next = (at < last).then(|| Cursor { kind, version, page: at as u32 + 1 });
            page.write(kind, entries.by_ref(), next, revision)
        });
        Ok(Self { kind, version, pages: written.collect(), charge })
    }

    /// Whether it is counted with what stands, and may be kept.
    pub(crate) fn is_kept(&self) -> bool {
        matches!(self.charge, Held::Kept { .. })
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
                let why =
                    "Invalid cursor: it belongs to another list, or the list has changed; list again from the start";
                Refusal::new(Reason::InvalidParams, why)
            })
    }
}

/// How much is on a page.
#[derive(Default)]
struct Layout {
    items: usize,
    bytes: usize,
}

impl Layout {
    fn write<'a>(
        &self,
        kind: Kind,
        entries: &mut impl Iterator<Item = &'a Entry>,
        next: Option<Cursor>,
        revision: Revision,
    ) -> Object {
        let mut out = Vec::with_capacity(self.bytes + PAGE_BYTES);
        out.push(b'{');
        if revision.is_modern() {
            out.extend_from_slice(b"\"resultType\":\"complete\",\"ttlMs\":0,\"cacheScope\":\"private\",");
        }
        out.extend_from_slice(format!("\"{}\":[", kind.member()).as_bytes());
        for (at, entry) in entries.take(self.items).enumerate() {
            if at > 0 {
                out.push(b',');
            }
            out.extend_from_slice(&translate::definition(&entry.published(), entry.revision, revision));
        }
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
}
