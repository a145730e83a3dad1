//! Cursors of our own lists: which list, which version of it, where to go on. Pure.

use super::kind::Kind;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// The longest cursor that is looked at.
pub(crate) const CURSOR_BYTES_MAX: usize = 8 * 1024;

/// Where a list goes on. It names the list by its content: it outlives a restart, and fits nobody's list but its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) kind: Kind,
    pub(crate) version: Version,
    pub(crate) page: u32,
}

/// The digest of a whole list as one caller sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version([u8; 8]);

impl Version {
    pub(crate) fn of(content: &[u8]) -> Self {
        let mut version = VersionOf::default();
        version.take(content);
        version.version()
    }
}

/// The digest of a list that is written piece by piece.
#[derive(Default)]
pub(crate) struct VersionOf(Sha256);

impl VersionOf {
    /// What comes next.
    pub(crate) fn take(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    pub(crate) fn version(self) -> Version {
        Version(self.0.finalize()[..8].try_into().expect("a digest is longer than that"))
    }
}

impl Cursor {
    /// The text that clients hand back.
    pub(crate) fn encode(&self) -> String {
        let mut bytes = vec![self.kind as u8];
        bytes.extend_from_slice(&self.version.0);
        bytes.extend_from_slice(&self.page.to_be_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Reads what a client hands back; `None` where it is none of ours.
    pub(crate) fn decode(text: &str) -> Option<Self> {
        let bytes: [u8; 13] = URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()?;
        let kind = Kind::ALL.into_iter().find(|kind| *kind as u8 == bytes[0])?;
        let version = Version(bytes[1..9].try_into().ok()?);
        Some(Self { kind, version, page: u32::from_be_bytes(bytes[9..].try_into().ok()?) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_survive_and_nonsense_is_none() {
        for kind in Kind::ALL {
            let cursor = Cursor { kind, version: Version::of(b"x"), page: 7 };
            assert_eq!(Cursor::decode(&cursor.encode()), Some(cursor));
        }
        for text in ["", "x", "AAAA", "////////////////////", &"A".repeat(400)] {
            assert_eq!(Cursor::decode(text), None, "{text}");
        }
    }
}
