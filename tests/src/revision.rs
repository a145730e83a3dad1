//! The five published revisions and the era each belongs to.

use serde::{Deserialize, Serialize};

/// A dated protocol version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Revision {
    /// The first one: no Streamable HTTP by the book.
    #[serde(rename = "2024-11-05")]
    R2024_11_05,
    /// Streamable HTTP and batches.
    #[serde(rename = "2025-03-26")]
    R2025_03_26,
    /// Structured results, elicitation, the version header.
    #[serde(rename = "2025-06-18")]
    R2025_06_18,
    /// The last one with a handshake.
    #[serde(rename = "2025-11-25")]
    R2025_11_25,
    /// The first stateless one.
    #[serde(rename = "2026-07-28")]
    R2026_07_28,
}

impl Revision {
    /// All of them, oldest first.
    pub const ALL: [Revision; 5] = [
        Revision::R2024_11_05,
        Revision::R2025_03_26,
        Revision::R2025_06_18,
        Revision::R2025_11_25,
        Revision::R2026_07_28,
    ];
    /// Those with a handshake, oldest first.
    pub const LEGACY: [Revision; 4] =
        [Revision::R2024_11_05, Revision::R2025_03_26, Revision::R2025_06_18, Revision::R2025_11_25];
    /// The stateless one.
    pub const MODERN: Revision = Revision::R2026_07_28;

    /// The text that stands on the wire.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Revision::R2024_11_05 => "2024-11-05",
            Revision::R2025_03_26 => "2025-03-26",
            Revision::R2025_06_18 => "2025-06-18",
            Revision::R2025_11_25 => "2025-11-25",
            Revision::R2026_07_28 => "2026-07-28",
        }
    }

    /// The revision that a text names.
    #[must_use]
    pub fn parse(text: &str) -> Option<Revision> {
        Revision::ALL.into_iter().find(|revision| revision.text() == text)
    }

    /// Whether each request stands alone, without a handshake.
    #[must_use]
    pub fn is_modern(self) -> bool {
        self == Revision::MODERN
    }

    /// Whether results may carry `structuredContent`.
    #[must_use]
    pub fn has_structured_content(self) -> bool {
        self >= Revision::R2025_06_18
    }

    /// Whether a client must send `MCP-Protocol-Version` after the handshake.
    #[must_use]
    pub fn has_version_header(self) -> bool {
        self >= Revision::R2025_06_18
    }

    /// Whether `notifications/progress` may carry a `message`.
    #[must_use]
    pub fn has_progress_message(self) -> bool {
        self >= Revision::R2025_03_26
    }
}

impl std::fmt::Display for Revision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())
    }
}
