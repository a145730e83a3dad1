//! One thing that the gateway offers: what clients call it, whose it is, what that one calls it.

use crate::protocol::http::param_headers::ParamHeaders;
use crate::protocol::revision::Revision;
use crate::protocol::value::splice;
use crate::router::names::MemberId;
use bytes::Bytes;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// What an entry takes beside its texts: its place, those in the tables that lead to it, and their parts.
const ENTRY_BYTES: usize = 384;

/// One offered thing.
pub(crate) struct Entry {
    /// What clients call it.
    pub(crate) public: Arc<str>,
    /// What its upstream calls it.
    pub(crate) own: Arc<str>,
    /// The raw JSON string to put in place of the public name; `None` where the two are the same.
    pub(crate) own_raw: Option<Bytes>,
    /// Whose it is.
    pub(crate) member: MemberId,
    /// Its definition as its upstream wrote it, raw JSON of `revision`: the inventory's own bytes.
    pub(crate) definition: Bytes,
    /// What clients read in place of parts of it: the public name, public URIs; in order.
    pub(crate) changes: Vec<(Range<usize>, String)>,
    pub(crate) revision: Revision,
    /// Whether the gateway offers it itself, on behalf of the upstream.
    pub(crate) is_of_gateway: bool,
    /// Arguments of a tool that travel as headers, too.
    pub(crate) headers: Option<Arc<ParamHeaders>>,
}

impl Entry {
    /// Its definition as clients read it.
    pub(crate) fn published(&self) -> Cow<'_, [u8]> {
        match self.changes.is_empty() {
            true => Cow::Borrowed(&self.definition),
            false => Cow::Owned(splice::replace(&self.definition, &self.changes)),
        }
    }

    /// Whether a tool says of itself that it changes nothing.
    pub(crate) fn changes_nothing(&self) -> bool {
        let said = splice::find(&self.definition, &["annotations", "readOnlyHint"]);
        said.is_some_and(|place| self.definition[place] == b"true"[..])
    }

    /// What it takes of the budget beside the inventory.
    pub(crate) fn weight(&self) -> usize {
        let changes = self.changes.iter().map(|(place, text)| size_of_val(place) + size_of_val(text) + text.len());
        // Names and URIs stand in tables again, in templates twice.
        ENTRY_BYTES + self.public.len() * 4 + self.own_raw.as_ref().map_or(0, Bytes::len) + changes.sum::<usize>()
    }

    /// Whether clients see the same in both.
    pub(crate) fn looks_like(&self, other: &Self) -> bool {
        let is_same = || self.definition == other.definition && self.changes == other.changes;
        self.revision == other.revision
            && self.public == other.public
            && (is_same() || self.published() == other.published())
    }

    /// Whether nothing differs, not even whose it is.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.member == other.member && self.own == other.own && self.looks_like(other)
    }
}
