//! One thing that the gateway offers: what clients call it, whose it is, what that one calls it.

use crate::protocol::{ParamHeaders, Revision};
use bytes::Bytes;
use std::sync::Arc;

/// One offered thing.
pub(super) struct Entry {
    /// What clients call it.
    pub(super) public: Arc<str>,
    /// What its upstream calls it.
    pub(super) own: Arc<str>,
    /// The raw JSON string to put in place of the public name; `None` where the two are the same.
    pub(super) own_raw: Option<Bytes>,
    /// Whose it is: the upstream's place in configuration order.
    pub(super) member: usize,
    /// Its definition with the public name in it, as raw JSON of `revision`.
    pub(super) definition: Bytes,
    pub(super) revision: Revision,
    /// Arguments of a tool that travel as headers, too.
    pub(super) headers: Option<Arc<ParamHeaders>>,
}

impl Entry {
    /// Whether clients see the same in both.
    pub(super) fn looks_like(&self, other: &Self) -> bool {
        self.revision == other.revision && self.public == other.public && self.definition == other.definition
    }

    /// Whether nothing differs, not even whose it is.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.member == other.member && self.own == other.own && self.looks_like(other)
    }
}
