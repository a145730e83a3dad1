//! What one upstream offers.

use super::freshness::Fresh;
use super::listing::Listing;
use super::schedule::ListKinds;
use crate::protocol::capabilities::EXTENSION_TASKS;
use crate::protocol::json;
use crate::protocol::revision::Revision;
use crate::protocol::value::Object;
use bytes::Bytes;
use std::sync::Arc;

/// What one upstream offers, as it was last read.
#[derive(Debug, Clone)]
pub struct Inventory {
    /// What definitions are written in.
    pub revision: Revision,
    /// Tools that the configuration admits.
    pub tools: Listing,
    /// Resources.
    pub resources: Listing,
    /// Resource templates.
    pub templates: Listing,
    /// Prompts.
    pub prompts: Listing,
    /// The capabilities that the upstream declared.
    pub capabilities: Object,
    /// Its instructions, a raw JSON string.
    pub instructions: Option<Bytes>,
    /// What it can be asked.
    pub supports: Supports,
    /// For how long its lists hold.
    pub fresh: Arc<Fresh>,
    /// How often the upstream has said that they changed, up to when they were read.
    pub announced: Announced,
}

/// How often an upstream has said that its lists changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Announced {
    /// Its tools.
    pub tools: u64,
    /// Its resources, or their templates.
    pub resources: u64,
    /// Its prompts.
    pub prompts: u64,
}

impl Announced {
    /// These too, once more.
    pub(crate) fn and(self, kinds: ListKinds) -> Self {
        let more = |count: u64, kind| count + u64::from(kinds.has(kind));
        Self {
            tools: more(self.tools, ListKinds::TOOLS),
            resources: more(self.resources, ListKinds::RESOURCES),
            prompts: more(self.prompts, ListKinds::PROMPTS),
        }
    }
}

/// What an upstream can be asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Supports {
    /// Its tools.
    pub tools: bool,
    /// Its resources.
    pub resources: bool,
    /// To tell of changes of a resource.
    pub subscribe: bool,
    /// Its prompts.
    pub prompts: bool,
    /// Completions.
    pub completions: bool,
    /// Log messages.
    pub logging: bool,
    /// Tasks, in the form of its revision.
    pub tasks: bool,
}

impl Supports {
    /// What declared capabilities mean. Before 2025-03-26 completion had no capability of its own.
    pub(crate) fn of(capabilities: &Object, revision: Revision) -> Self {
        let has = |name: &str| capabilities.find(name).is_some_and(|value| value.starts_with(b"{"));
        let path = |keys: &[&str]| {
            let start = Some(&capabilities.raw()[..]);
            keys.iter().fold(start, |at, key| json::get(at?, key)).is_some_and(|value| value.starts_with(b"{"))
        };
        let subscribe = capabilities.find("resources").and_then(|resources| json::get(resources, "subscribe"));
        Self {
            tools: has("tools"),
            resources: has("resources"),
            subscribe: subscribe == Some(b"true"),
            prompts: has("prompts"),
            completions: has("completions")
                || (revision == Revision::V2024_11_05 && (has("prompts") || has("resources"))),
            logging: has("logging"),
            tasks: match revision {
                Revision::V2025_11_25 => path(&["tasks", "requests", "tools", "call"]),
                revision => revision.is_modern() && path(&["extensions", EXTENSION_TASKS]),
            },
        }
    }
}

impl Inventory {
    /// How many tools, resources, templates and prompts there are.
    pub fn counts(&self) -> [usize; 4] {
        [self.tools.len(), self.resources.len(), self.templates.len(), self.prompts.len()]
    }

    /// Whether a client could tell the two apart by what is in them.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.revision == other.revision
            && self.supports == other.supports
            && self.capabilities.raw() == other.capabilities.raw()
            && self.instructions == other.instructions
            && self.tools.is_same(&other.tools)
            && self.resources.is_same(&other.resources)
            && self.templates.is_same(&other.templates)
            && self.prompts.is_same(&other.prompts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_read() {
        let capabilities =
            Object::parse(r#"{"tools":{},"resources":{"subscribe":true},"logging":null,"prompts":{}}"#.into()).unwrap();
        let supports = Supports::of(&capabilities, Revision::V2025_06_18);
        let expected = Supports { tools: true, resources: true, subscribe: true, prompts: true, ..Supports::default() };
        assert_eq!(supports, expected);
        assert!(Supports::of(&capabilities, Revision::V2024_11_05).completions);
    }
}
