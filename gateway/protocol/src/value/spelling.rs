//! The keys that the protocol has at each level, and every spelling that some program takes for one of them.

use crate::json;
use crate::json::{Fault, Members};

/// The `_meta` key that ties a message to its task.
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
/// No key of the protocol is longer.
const KEY_BYTES_MAX: usize = 48;

/// A key of an object that not every program reads as the others do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Twofold {
    /// Where it stands, below the object that was walked; empty is the object itself.
    level: &'static str,
    /// The protocol's own spelling.
    key: &'static str,
    /// It stands twice; else it stands once, in a spelling that is not the protocol's.
    is_double: bool,
}

impl Twofold {
    pub(crate) fn new(level: &'static str, key: &'static str, is_double: bool) -> Self {
        Self { level, key, is_double }
    }

    /// Whether it is a key of `_meta`, or `_meta` itself: that level belongs to every method.
    pub fn is_of_meta(&self) -> bool {
        self.key == META.name || self.level.starts_with(META.name)
    }

    /// Says so, of the parameters or the result that was walked; of the frame itself where the name is empty.
    pub fn of(self, object: &str) -> String {
        let Self { level, key, is_double } = self;
        let place = match (object, level) {
            ("", _) => "the frame".to_owned(),
            (_, "") => format!("`{object}`"),
            _ => format!("`{object}.{level}`"),
        };
        match is_double {
            true => format!("`{key}` stands twice in {place}; spellings that differ in case count as one"),
            false => format!("a key in {place} must be spelled `{key}`: some programs take it for that"),
        }
    }
}

/// A level of a message below its parameters or its result whose keys the gateway acts on.
pub(crate) struct Level {
    name: &'static str,
    keys: &'static [&'static str],
    /// The levels below it, and under which of its keys.
    below: &'static [(&'static str, &'static Level)],
    /// Another spelling that stands alone is nobody's: what it may be taken for concerns its sender alone.
    lets_variants_be: bool,
}

const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// `ref`: what is to be completed.
pub(crate) static REFERENCE: Level =
    Level { name: "ref", keys: &["type", "name", "uri"], below: &[], lets_variants_be: false };
/// `task`: what is told of a task, and for how long it is wanted.
pub(crate) static TASK: Level =
    Level { name: "task", keys: &["taskId", "status", "ttl"], below: &[], lets_variants_be: false };
/// `capabilities`: what a side declares.
pub(crate) static CAPABILITIES: Level = declared("capabilities");
/// The keys of `_meta`.
pub(crate) const META_KEYS: [&str; 8] = [
    "progressToken",
    RELATED_TASK,
    "io.modelcontextprotocol/protocolVersion",
    CLIENT_CAPABILITIES,
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/logLevel",
    "io.modelcontextprotocol/subscriptionId",
    "io.modelcontextprotocol/serverInfo",
];
/// `_meta`.
pub(crate) static META: Level = Level {
    name: "_meta",
    keys: &META_KEYS,
    below: &[(RELATED_TASK, &RELATED), (CLIENT_CAPABILITIES, &DECLARED)],
    lets_variants_be: false,
};
static RELATED: Level = Level {
    name: "_meta.io.modelcontextprotocol/related-task",
    keys: &["taskId"],
    below: &[],
    lets_variants_be: false,
};
static DECLARED: Level = declared("_meta.io.modelcontextprotocol/clientCapabilities");

const fn declared(name: &'static str) -> Level {
    let keys = &["elicitation", "sampling", "roots", "tasks", "extensions", "experimental"];
    Level { name, keys, below: &[], lets_variants_be: true }
}

/// What was found on a walk: the first of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) double: Option<Twofold>,
    pub(crate) variant: Option<Twofold>,
}

impl Found {
    /// Whether all programs read alike what was walked.
    pub(crate) fn is_nothing(&self) -> bool {
        self.double.is_none() && self.variant.is_none()
    }

    pub(crate) fn note(&mut self, one: Twofold) {
        match one.is_double {
            true => drop(self.double.get_or_insert(one)),
            // One of `_meta` matters to every method.
            false if one.is_of_meta() => self.variant = Some(one),
            false => drop(self.variant.get_or_insert(one)),
        }
    }
}

/// Where the members of a `_meta` stand in the object that it is a member of, as the walk of that met them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spots {
    /// Those of [`META_KEYS`], in their order; all zero = absent.
    members: [(u32, u32); META_KEYS.len()],
    /// There are others, or one whose place among those that go on matters.
    has_others: bool,
}

impl Spots {
    /// A member was met, with this key.
    pub(crate) fn note(&mut self, key: Option<usize>, value: usize, end: usize) {
        match key {
            Some(key) => self.members[key] = (value as u32, end as u32),
            None => self.has_others = true,
        }
        self.has_others |= key.is_some_and(|key| META_KEYS[key] == RELATED_TASK);
    }

    /// The members, where there are any and no others.
    pub(crate) fn members(&self) -> Option<impl Fn(usize) -> Option<std::ops::Range<usize>>> {
        let is_all = !self.has_others && self.members.iter().any(|(_, end)| *end != 0);
        let members = self.members;
        is_all.then_some(move |key: usize| {
            let (value, end) = members[key];
            (end != 0).then_some(value as usize..end as usize)
        })
    }
}

/// Is told which key of its level a member has, spelled just so, and where its value stands.
pub(crate) type Note<'a> = dyn FnMut(Option<usize>, usize, usize) + 'a;

/// Where nobody needs to know.
pub(crate) fn unnoted(_key: Option<usize>, _value: usize, _end: usize) {}

/// Walks the object of a level that starts at `at`, and returns where it ends.
pub(crate) fn walk(
    text: &[u8],
    at: usize,
    level: &'static Level,
    found: &mut Found,
    note: &mut Note<'_>,
) -> Result<usize, Fault> {
    let mut members = Members::at(text, at)?;
    let mut seen = 0_u32;
    while let Some(member) = members.next_key()? {
        let known = member.key(text).and_then(|key| of(&key, level.keys));
        let below = known.and_then(|(at, _)| level.below.iter().find(|(key, _)| *key == level.keys[at]));
        let end = match below {
            Some((_, below)) if text.get(member.value) == Some(&b'{') => {
                walk(text, member.value, below, found, &mut unnoted)?
            }
            _ => json::value(text, member.value)?,
        };
        members.resume(end);
        note(known.filter(|(_, is_exact)| *is_exact).map(|(at, _)| at), member.value, end);
        if let Some((at, is_exact)) = known {
            if seen & (1 << at) != 0 {
                found.note(Twofold::new(level.name, level.keys[at], true));
            }
            if !is_exact && !level.lets_variants_be {
                found.note(Twofold::new(level.name, level.keys[at], false));
            }
            seen |= 1 << at;
        }
    }
    Ok(members.end())
}

/// Which of these keys one is, and whether it is spelled just so.
#[inline]
pub(crate) fn of(key: &[u8], known: &[&str]) -> Option<(usize, bool)> {
    if let Some(at) = known.iter().position(|one| one.as_bytes() == key) {
        return Some((at, true));
    }
    almost(key, known).map(|at| (at, false))
}

/// Which of these keys a lenient program takes one for: by any case that any language folds into ASCII (Go folds `ſ` and the
/// Kelvin sign, Java also `ı` and `İ`), and up to its first NUL, as C reads it.
pub(crate) fn almost(key: &[u8], known: &[&str]) -> Option<usize> {
    let mut folded = [0; KEY_BYTES_MAX];
    let (mut length, mut rest) = (0, key);
    while let Some((first, after)) = rest.split_first() {
        let (byte, after) = match (first, after) {
            (0, _) => break,
            (0xC5, [0xBF, after @ ..]) => (b's', after),
            (0xC4, [0xB0 | 0xB1, after @ ..]) => (b'i', after),
            (0xE2, [0x84, 0xAA, after @ ..]) => (b'k', after),
            (0x80.., _) => return None,
            (byte, after) => (*byte, after),
        };
        *folded.get_mut(length)? = byte;
        (length, rest) = (length + 1, after);
    }
    known.iter().position(|one| one.as_bytes().eq_ignore_ascii_case(&folded[..length]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_that_some_program_takes_for_a_key_is_known() {
        let known = ["task", "taskId", RELATED_TASK];
        for (key, expected) in [
            ("taskId", Some((1, true))),
            ("TASKID", Some((1, false))),
            ("ta\u{17f}kid", Some((1, false))),
            ("tas\u{212a}\u{131}d", Some((1, false))),
            ("task\u{130}d\0x", Some((1, false))),
            ("task\0", Some((0, false))),
            ("IO.modelcontextprotocol/Related-Task", Some((2, false))),
            ("t\u{e4}sk", None),
            ("task_id", None),
            ("", None),
        ] {
            assert_eq!(of(key.as_bytes(), &known), expected, "{key}");
        }
        assert_eq!(almost(&[b'a'; 100], &known), None);
    }
}
