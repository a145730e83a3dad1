//! What of the sources was not read, so that nothing is called missing that may stand there.

use crate::config::source::host::slug;
use std::collections::BTreeSet;

/// The table of a host's file in TOML that holds its servers.
const OF_CODEX: &str = "mcp_servers";

/// The parts with syntax faults.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Gaps {
    /// Upstreams of which a part was not read.
    upstreams: BTreeSet<String>,
    /// Something of the other sections was not read.
    has_sections: bool,
    /// Servers of Codex are among what was not read, so that the file is a host's.
    is_of_codex: bool,
    /// What was not read may be anything.
    has_all: bool,
}

impl Gaps {
    /// A whole file, or so much of it that anything may stand there.
    pub(crate) fn everything() -> Self {
        Self { has_all: true, ..Self::default() }
    }

    /// With a part of the table that has these keys above it.
    pub(super) fn note(&mut self, path: &[String]) {
        self.is_of_codex |= path.first().is_some_and(|first| first == OF_CODEX);
        match path {
            [first, name, ..] if first == "upstreams" => drop(self.upstreams.insert(name.clone())),
            [first, name, ..] if first == OF_CODEX => drop(self.upstreams.insert(slug(name))),
            [first] if ["upstreams", OF_CODEX].contains(&&**first) => self.has_all = true,
            [] => self.has_all = true,
            _ => self.has_sections = true,
        }
    }

    /// With those of another source.
    pub(crate) fn add(&mut self, other: Self) {
        self.upstreams.extend(other.upstreams);
        self.has_sections |= other.has_sections;
        self.has_all |= other.has_all;
        self.is_of_codex |= other.is_of_codex;
    }

    /// Whether the file is one of Codex for what was not read of it.
    pub(crate) fn is_of_codex(&self) -> bool {
        self.is_of_codex
    }

    /// Whether a part of this upstream may be missing.
    pub(crate) fn has_upstream(&self, name: &str) -> bool {
        self.has_all || self.upstreams.contains(name)
    }

    /// Whether a part of another section may be missing.
    pub(crate) fn has_section(&self) -> bool {
        self.has_all || self.has_sections
    }
}
