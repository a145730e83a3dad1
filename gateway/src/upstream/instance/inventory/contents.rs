//! What one upstream offers.

use super::freshness::Fresh;
use super::listing::Listing;
use super::schedule::ListKinds;
use crate::protocol::capabilities::Supports;
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

impl Inventory {
    /// One that offers nothing.
    pub(crate) fn empty(revision: Revision) -> Self {
        let (tools, resources, templates, prompts) = Default::default();
        Self {
            revision,
            tools,
            resources,
            templates,
            prompts,
            capabilities: Object::empty(),
            instructions: None,
            supports: Supports::default(),
            fresh: Arc::default(),
            announced: Announced::default(),
        }
    }

    /// How many tools, resources, templates and prompts there are.
    pub fn counts(&self) -> [usize; 4] {
        [self.tools.len(), self.resources.len(), self.templates.len(), self.prompts.len()]
    }

    /// How many bytes its definitions have, as the upstream wrote them.
    pub(crate) fn bytes(&self) -> usize {
        let lists = [&self.tools, &self.resources, &self.templates, &self.prompts];
        lists.into_iter().flat_map(|list| list.iter()).map(|item| item.definition.raw().len()).sum()
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
