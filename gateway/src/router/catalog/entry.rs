//! One thing that the gateway offers: what clients call it, whose it is, what that one calls it.

use crate::protocol::http::param_headers::ParamHeaders;
use crate::protocol::revision::Revision;
use bytes::Bytes;
use std::sync::Arc;

/// One offered thing.
pub(crate) struct Entry {
    /// What clients call it.
    pub(crate) public: Arc<str>,
    /// What its upstream calls it.
    pub(crate) own: Arc<str>,
    /// The raw JSON string to put in place of the public name; `None` where the two are the same.
    pub(crate) own_raw: Option<Bytes>,
    /// Whose it is: the upstream's place in configuration order.
    pub(crate) member: usize,
    /// Its definition with the public name in it, as raw JSON of `revision`.
    pub(crate) definition: Bytes,
    pub(crate) revision: Revision,
    /// Arguments of a tool that travel as headers, too.
    pub(crate) headers: Option<Arc<ParamHeaders>>,
}

impl Entry {
    /// Whether clients see the same in both.
    pub(crate) fn looks_like(&self, other: &Self) -> bool {
        self.revision == other.revision && self.public == other.public && self.definition == other.definition
    }

    /// Whether nothing differs, not even whose it is.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.member == other.member && self.own == other.own && self.looks_like(other)
    }
}
