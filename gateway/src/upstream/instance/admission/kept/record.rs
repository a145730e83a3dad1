//! One kept session, as the bytes that are sealed: whose it is, at which upstream, and by which id that knows it.

use crate::protocol::revision::Revision;
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// A longer text is not kept; ids of upstreams may be tokens that say much.
const TEXT_BYTES_MAX: usize = 4096;
/// How a record begins: what it says, and of an open session what is lost with it.
const OVER: u8 = 0;
const OPEN: u8 = 1;
const WISHES: u8 = 2;
const LISTS: u8 = 4;

/// Where a session is found: at which upstream, and of which client session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    /// A digest of the configuration of the upstream.
    pub(crate) upstream: Arc<str>,
    /// The short id of the client session.
    pub(crate) client: Arc<str>,
}

/// What is kept of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    /// The revision that is spoken in it, and a digest of what it declares: see [`Self::terms`].
    pub(crate) terms: String,
    /// By what the upstream knows it; empty where that is too long to be kept: then there was one, and it is lost.
    pub(crate) id: String,
    /// Its client has subscribed there, or set a log level.
    pub(crate) has_wishes: bool,
    /// Its client sees the lists that were read in it.
    pub(crate) has_lists: bool,
}

/// What an earlier run has left of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Earlier {
    Kept(Kept),
    /// Its client did not come for it in time: it was ended.
    GivenUp,
}

impl Kept {
    /// The terms of a session that speaks this revision and declares this.
    pub(crate) fn terms(revision: Revision, declared: &str) -> String {
        format!("{revision} {}", STANDARD_NO_PAD.encode(Sha256::digest(declared)))
    }

    /// An id as it is kept.
    pub(crate) fn id_of(id: &str) -> &str {
        if id.len() <= TEXT_BYTES_MAX { id } else { "" }
    }

    /// The revision that is spoken in it.
    pub(crate) fn revision(&self) -> Option<Revision> {
        Revision::parse(self.terms.split(' ').next()?)
    }
}

/// What becomes of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    Open(Place, Kept),
    /// The one with this id is over; one that was opened since at the same place is not.
    Over(Place, String),
}

impl Change {
    /// As bytes, with the time in milliseconds; `None` where something is too long to be kept.
    pub(super) fn write(&self, now: u64) -> Option<Vec<u8>> {
        let mut bytes = Vec::with_capacity(256);
        let (kind, place, texts) = match self {
            Self::Open(place, kept) => (
                OPEN | (WISHES * u8::from(kept.has_wishes)) | (LISTS * u8::from(kept.has_lists)),
                place,
                vec![&*kept.terms, &*kept.id],
            ),
            Self::Over(place, id) => (OVER, place, vec![&**id]),
        };
        bytes.push(kind);
        bytes.extend_from_slice(&now.to_be_bytes());
        for text in [&*place.upstream, &*place.client].into_iter().chain(texts) {
            let length = u16::try_from(text.len()).ok().filter(|length| usize::from(*length) <= TEXT_BYTES_MAX)?;
            bytes.extend_from_slice(&length.to_be_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        Some(bytes)
    }

    /// What was written, and when.
    pub(super) fn read(bytes: &[u8]) -> Option<(Self, u64)> {
        let (kind, rest) = bytes.split_first()?;
        let (at, mut rest) = rest.split_at_checked(8)?;
        let at = u64::from_be_bytes(at.try_into().ok()?);
        let mut text = || {
            let (length, more) = rest.split_at_checked(2)?;
            let (text, more) = more.split_at_checked(u16::from_be_bytes(length.try_into().ok()?).into())?;
            rest = more;
            std::str::from_utf8(text).ok()
        };
        let place = Place { upstream: text()?.into(), client: text()?.into() };
        let change = match *kind {
            OVER => Self::Over(place, text()?.into()),
            kind if kind & !(WISHES | LISTS) == OPEN => {
                let (terms, id) = (text()?.into(), text()?.into());
                let (has_wishes, has_lists) = (kind & WISHES != 0, kind & LISTS != 0);
                Self::Open(place, Kept { terms, id, has_wishes, has_lists })
            }
            _ => return None,
        };
        Some((change, at))
    }
}
