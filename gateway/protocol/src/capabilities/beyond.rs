//! What a client declares beyond the protocol, and all that a handshake declares on its behalf.

use super::declared::{Capabilities, is_known};
use crate::json;
use crate::revision::Revision;

/// More than this is declared on nobody's behalf: it is kept for every session that bears it.
const BYTES_MAX: usize = 8 * 1024;

/// What a client declares beyond the protocol: its `experimental` capabilities, and extensions that the gateway does not
/// know. Only an upstream session that is the client's own, or one of clients who declare the very same, is told of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Beyond {
    /// The members of `experimental`, as `"key":value` joined by commas.
    experimental: String,
    /// The same of `extensions`, without those that the gateway knows.
    extensions: String,
}

/// What a handshake declares.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Declared {
    /// What can be asked.
    pub can: Capabilities,
    /// What the protocol does not have.
    pub beyond: Beyond,
}

impl Beyond {
    /// Reads the capabilities that a client has declared.
    pub fn parse(raw: &[u8]) -> Self {
        let member = |key| if raw == b"{}" { None } else { json::get(raw, key) };
        let beyond = Self {
            experimental: joined(member("experimental"), |_| true),
            extensions: joined(member("extensions"), |name| !is_known(name)),
        };
        if beyond.experimental.len() + beyond.extensions.len() > BYTES_MAX { Self::default() } else { beyond }
    }

    /// How many bytes it takes.
    pub fn bytes(&self) -> usize {
        self.experimental.len() + self.extensions.len()
    }

    /// Whether it is nothing.
    pub fn is_empty(&self) -> bool {
        self.experimental.is_empty() && self.extensions.is_empty()
    }

    /// The same without extensions.
    #[must_use]
    pub fn without_extensions(self) -> Self {
        Self { extensions: String::new(), ..self }
    }
}

impl Declared {
    /// Reads the capabilities that a client of `revision` has declared.
    pub fn parse(raw: &[u8], revision: Revision) -> Self {
        Self { can: Capabilities::parse(raw, revision), beyond: Beyond::parse(raw) }
    }

    /// As a client of `revision` declares it; what the revision cannot have is left out.
    pub fn to_json(&self, revision: Revision) -> String {
        let text = self.can.declare(revision, &self.beyond.extensions);
        match &*self.beyond.experimental {
            "" => text,
            more if text == "{}" => format!("{{\"experimental\":{{{more}}}}}"),
            more => format!("{{\"experimental\":{{{more}}},{}", &text[1..]),
        }
    }
}

impl From<Capabilities> for Declared {
    fn from(can: Capabilities) -> Self {
        Self { can, beyond: Beyond::default() }
    }
}

/// The members of an object whose names are wanted and whose values are objects.
fn joined(object: Option<&[u8]>, is_wanted: impl Fn(&str) -> bool) -> String {
    let raw = object.filter(|raw| raw.starts_with(b"{")).unwrap_or(b"{}");
    let members = json::Members::of(raw).into_iter().flatten().flatten();
    let kept = members.filter(|member| {
        let name = json::unquote(&raw[member.start..member.key_end]);
        raw[member.value..member.end].starts_with(b"{") && name.is_some_and(|name| is_wanted(&name))
    });
    let texts: Vec<_> = kept.map(|member| String::from_utf8_lossy(&raw[member.start..member.end])).collect();
    texts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_the_protocol_survives_being_declared() {
        let raw = br#"{"roots":{},"experimental":{"x": {"a":[1, 2]},"odd":7},"extensions":{"io.modelcontextprotocol/ui":{},"a/b":{"c":1}}}"#;
        for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
            let declared = Declared::parse(raw, revision);
            assert!(!declared.beyond.is_empty() && declared.can.has(Capabilities::APPS));
            let text = declared.to_json(revision);
            assert!(text.contains(r#""experimental":{"x": {"a":[1, 2]}}"#), "{text}");
            assert!(text.contains(r#""text/html;profile=mcp-app"]},"a/b":{"c":1}}"#), "{text}");
            assert_eq!(Declared::parse(text.as_bytes(), revision), declared);
            let bare = Declared { can: Capabilities::NONE, ..declared };
            assert_eq!(Declared::parse(bare.to_json(revision).as_bytes(), revision), bare);
            assert!(!bare.beyond.without_extensions().is_empty());
        }
        let nothing = Declared::parse(br#"{"experimental":{},"extensions":[]}"#, Revision::V2025_11_25);
        assert_eq!((nothing.to_json(Revision::V2025_11_25).as_str(), nothing), ("{}", Declared::default()));
    }

    #[test]
    fn more_than_can_be_kept_is_not_declared() {
        let long = format!(r#"{{"experimental":{{"x":{{"y":"{}"}}}}}}"#, "z".repeat(BYTES_MAX));
        assert!(Beyond::parse(long.as_bytes()).is_empty());
    }
}
