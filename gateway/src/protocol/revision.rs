//! The dated protocol versions, their eras, and which of them a payload must be looked into for.

/// Legacy peers shake hands and keep sessions; modern peers say everything in each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Era {
    /// 2025-11-25 and earlier.
    Legacy,
    /// 2026-07-28 and later.
    Modern,
}

/// A published revision of the protocol, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Revision {
    /// 2024-11-05
    V2024_11_05,
    /// 2025-03-26
    V2025_03_26,
    /// 2025-06-18
    V2025_06_18,
    /// 2025-11-25
    V2025_11_25,
    /// 2026-07-28
    V2026_07_28,
}

impl Revision {
    /// Every revision, oldest first.
    pub const ALL: [Self; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];
    /// What a handshake falls back to.
    pub const NEWEST_LEGACY: Self = Self::V2025_11_25;
    /// What a stateless request is answered at.
    pub const NEWEST_MODERN: Self = Self::V2026_07_28;
    /// What a legacy HTTP request without a version header speaks, where no session knows better.
    pub const HEADERLESS: Self = Self::V2025_03_26;

    /// The date, as peers write it.
    pub fn as_str(self) -> &'static str {
        &self.quoted()[1..11]
    }

    /// The date as a JSON string.
    pub fn quoted(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "\"2024-11-05\"",
            Self::V2025_03_26 => "\"2025-03-26\"",
            Self::V2025_06_18 => "\"2025-06-18\"",
            Self::V2025_11_25 => "\"2025-11-25\"",
            Self::V2026_07_28 => "\"2026-07-28\"",
        }
    }

    /// The revision of a date that we speak.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == text)
    }

    /// The era it belongs to.
    pub fn era(self) -> Era {
        if self >= Self::V2026_07_28 { Era::Modern } else { Era::Legacy }
    }

    /// Whether it is stateless.
    pub fn is_modern(self) -> bool {
        self.era() == Era::Modern
    }

    /// What we answer to an `initialize` that asks for `asked`: the same where it is a handshake revision, else our newest.
    pub fn negotiate(asked: &str) -> Self {
        Self::parse(asked).filter(|revision| !revision.is_modern()).unwrap_or(Self::NEWEST_LEGACY)
    }

    /// The dates of one era as a JSON array, newest first: what refusals and `server/discover` list.
    pub fn list(era: Option<Era>) -> String {
        let dates = Self::ALL.into_iter().rev().filter(|r| era.is_none_or(|era| r.era() == era));
        format!("[{}]", dates.map(|r| format!("\"{}\"", r.as_str())).collect::<Vec<_>>().join(","))
    }
}

impl std::fmt::Display for Revision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
