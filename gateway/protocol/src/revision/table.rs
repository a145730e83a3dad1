//! The dated protocol versions, their eras, and which of them a payload must be looked into for.

use crate::frame::Method;

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

    /// All dates for a sentence, newest first.
    pub fn in_words() -> String {
        Self::ALL.into_iter().rev().map(Self::as_str).collect::<Vec<_>>().join(", ")
    }
}

impl std::fmt::Display for Revision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What payloads have in some revisions only: a set, compared as one number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Features(u32);

impl Features {
    /// Annotations of tools.
    pub const HINTS: Self = Self(1);
    /// Content blocks of sound.
    pub const AUDIO: Self = Self(1 << 1);
    /// Words in progress notices.
    pub const PROGRESS_WORDS: Self = Self(1 << 2);
    /// Titles of definitions.
    pub const TITLES: Self = Self(1 << 3);
    /// `_meta` of definitions, contents and roots.
    pub const PART_META: Self = Self(1 << 4);
    /// Structured results and their schemas.
    pub const STRUCTURED: Self = Self(1 << 5);
    /// Content blocks that name a resource.
    pub const LINKS: Self = Self(1 << 6);
    /// Questions for the person, by a form.
    pub const FORMS: Self = Self(1 << 7);
    /// What was filled in before, in completion.
    pub const FILLED_IN: Self = Self(1 << 8);
    /// Icons.
    pub const ICONS: Self = Self(1 << 9);
    /// Questions by a page, and forms with titled and multiple choices and with defaults.
    pub const CHOICES: Self = Self(1 << 10);
    /// Several blocks in one message of a sampling question, and tools there.
    pub const BLOCKS: Self = Self(1 << 11);
    /// Tasks as the handshake era has them: `task`, `execution`.
    pub const TASKS: Self = Self(1 << 12);
    /// Questions by a page have an id.
    pub const PAGE_IDS: Self = Self(1 << 13);
    /// Structured results of any JSON type.
    pub const ANY_JSON: Self = Self(1 << 14);
    /// Results of a type, with caching hints; questions and answers embedded in results and requests.
    pub const STATELESS: Self = Self(1 << 15);

    const NONE: Self = Self(0);

    /// What a revision has.
    pub const fn of(revision: Revision) -> Self {
        const SINCE_2025_03_26: u32 = Features::HINTS.0 | Features::AUDIO.0 | Features::PROGRESS_WORDS.0;
        const SINCE_2025_06_18: u32 = SINCE_2025_03_26
            | Features::TITLES.0
            | Features::PART_META.0
            | Features::STRUCTURED.0
            | Features::LINKS.0
            | Features::FORMS.0
            | Features::FILLED_IN.0;
        const SINCE_2025_11_25: u32 = SINCE_2025_06_18 | Features::ICONS.0 | Features::CHOICES.0 | Features::BLOCKS.0;
        Self(match revision {
            Revision::V2024_11_05 => 0,
            Revision::V2025_03_26 => SINCE_2025_03_26,
            Revision::V2025_06_18 => SINCE_2025_06_18,
            Revision::V2025_11_25 => SINCE_2025_11_25 | Self::TASKS.0 | Self::PAGE_IDS.0,
            Revision::V2026_07_28 => SINCE_2025_11_25 | Self::ANY_JSON.0 | Self::STATELESS.0,
        })
    }

    /// Whether all of `other` is in it.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether nothing is in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A part of the messages of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// What a request or a notification says.
    Params,
    /// What a request is answered with.
    Result,
    /// One item of a list.
    Definition,
    /// What a question of an upstream says.
    Question,
    /// What it is answered with.
    Answer,
}

/// The table: what may stand in a part of a method's messages that not every revision has. No row: bytes pass as they are.
const fn rows(part: Part, method: &Method) -> Features {
    use Features as F;
    const BLOCK: Features = F::AUDIO.and(F::PART_META).and(F::LINKS).and(F::ICONS);
    match (part, method) {
        (Part::Params, Method::Progress) => F::PROGRESS_WORDS,
        (Part::Params, Method::ToolsCall) => F::STATELESS.and(F::TASKS),
        (Part::Params, Method::PromptsGet | Method::ResourcesRead) => F::STATELESS,
        (Part::Params, Method::Complete) => F::FILLED_IN,
        (Part::Result, Method::ToolsCall) => F::STATELESS.and(BLOCK).and(F::STRUCTURED).and(F::ANY_JSON),
        (Part::Result, Method::PromptsGet) => F::STATELESS.and(BLOCK),
        (Part::Result, Method::ResourcesRead) => F::STATELESS.and(F::PART_META),
        (Part::Result, _) => F::STATELESS,
        (Part::Definition, Method::ToolsList) => {
            F::HINTS.and(F::TITLES).and(F::PART_META).and(F::STRUCTURED).and(F::ICONS).and(F::TASKS).and(F::ANY_JSON)
        }
        (Part::Definition, _) => F::TITLES.and(F::PART_META).and(F::ICONS),
        (Part::Question, Method::Elicitation) => {
            F::FORMS.and(F::CHOICES).and(F::PAGE_IDS).and(F::TASKS).and(F::STATELESS)
        }
        (Part::Question, Method::Sampling) => BLOCK.and(F::BLOCKS).and(F::TASKS).and(F::ANY_JSON).and(F::STATELESS),
        (Part::Question, _) => F::STATELESS,
        (Part::Answer, Method::Elicitation) => F::CHOICES.and(F::STATELESS),
        (Part::Answer, Method::Sampling) => BLOCK.and(F::BLOCKS).and(F::ANY_JSON).and(F::STATELESS),
        (Part::Answer, Method::RootsList) => F::PART_META.and(F::STATELESS),
        (Part::Params, _) | (Part::Answer, _) => F::NONE,
    }
}

/// What a part may have at its sender and not at its receiver, and the other way round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gap {
    /// The receiver does not have it.
    pub lost: Features,
    /// The sender does not have it.
    pub gained: Features,
}

impl Gap {
    /// What a part must be looked into for.
    pub const fn between(part: Part, method: &Method, from: Revision, to: Revision) -> Self {
        let (has, may, rows) = (Features::of(from), Features::of(to), rows(part, method));
        Self { lost: Features(has.0 & !may.0 & rows.0), gained: Features(may.0 & !has.0 & rows.0) }
    }

    /// Whether the bytes may pass as they are.
    pub const fn is_none(self) -> bool {
        self.lost.is_empty() && self.gained.is_empty()
    }

    /// Whether one side has this and the other does not.
    pub const fn differs(self, feature: Features) -> bool {
        self.lost.has(feature) || self.gained.has(feature)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_revisions_are_never_looked_into() {
        for revision in Revision::ALL {
            for part in [Part::Params, Part::Result, Part::Definition, Part::Question, Part::Answer] {
                for method in [Method::ToolsCall, Method::Elicitation, Method::Sampling, Method::ToolsList] {
                    assert!(Gap::between(part, &method, revision, revision).is_none());
                }
            }
        }
    }

    #[test]
    fn most_parts_of_the_handshake_era_pass_as_they_are() {
        use Revision as R;
        let none = |part, method, from, to| Gap::between(part, &method, from, to).is_none();
        assert!(none(Part::Params, Method::ToolsCall, R::V2024_11_05, R::V2025_06_18));
        assert!(none(Part::Result, Method::ToolsList, R::V2025_11_25, R::V2024_11_05));
        assert!(none(Part::Result, Method::ResourcesRead, R::V2025_11_25, R::V2025_06_18));
        assert!(!none(Part::Result, Method::ToolsCall, R::V2025_11_25, R::V2025_06_18));
        assert!(!none(Part::Result, Method::ToolsCall, R::V2024_11_05, R::V2026_07_28));
    }
}
