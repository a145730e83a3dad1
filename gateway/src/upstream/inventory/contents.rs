//! What one upstream offers.

use super::freshness::Fresh;
use crate::protocol::capabilities::EXTENSION_TASKS;
use crate::protocol::http::param_headers::ParamHeaders;
use crate::protocol::json;
use crate::protocol::revision::Revision;
use crate::protocol::value::Object;
use crate::secrets::mask;
use crate::secrets::mask::Kept;
use bytes::Bytes;
use std::sync::Arc;

/// What one upstream offers, as it was last read.
#[derive(Debug, Clone)]
pub struct Inventory {
    /// What definitions are written in.
    pub revision: Revision,
    /// Tools that the configuration admits.
    pub tools: Vec<Item>,
    /// Resources.
    pub resources: Vec<Item>,
    /// Resource templates.
    pub templates: Vec<Item>,
    /// Prompts.
    pub prompts: Vec<Item>,
    /// The capabilities that the upstream declared.
    pub capabilities: Object,
    /// Its instructions, a raw JSON string.
    pub instructions: Option<Bytes>,
    /// What it can be asked.
    pub supports: Supports,
    /// For how long its lists hold.
    pub fresh: Arc<Fresh>,
}

/// One tool, resource, template or prompt.
#[derive(Debug, Clone)]
pub struct Item {
    /// The name of a tool or prompt, the URI of a resource, the template's text.
    pub key: Arc<str>,
    /// The definition as the upstream wrote it.
    pub definition: Object,
    /// Of a tool: which arguments are told in headers.
    pub headers: Option<Arc<ParamHeaders>>,
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

impl Item {
    /// A definition without secrets of ours, named by this member of it; `None` where it has no name, or one for one client and another for the next.
    pub(crate) fn parse(raw: Bytes, key: &str) -> Option<Self> {
        let raw = mask::masked_json(&raw, Kept::Definition).unwrap_or(raw);
        let definition = Object::parse(raw).ok().filter(|definition| definition.doubled().is_none())?;
        let key = definition.find(key).and_then(json::unquote)?.as_ref().into();
        Some(Self { key, definition, headers: None })
    }

    /// Of a tool: finds out which arguments are told in headers, or what is wrong with what says so.
    pub(crate) fn compile_headers(&mut self) -> Result<(), String> {
        let compiled = self.definition.find("inputSchema").map_or(Ok(None), ParamHeaders::compile)?;
        self.headers = compiled.map(Arc::new);
        Ok(())
    }

    /// Whether it is a tool that must be called as a task.
    pub(crate) fn runs_as_a_task(&self) -> bool {
        let support = self.definition.find("execution").and_then(|raw| json::get(raw, "taskSupport"));
        support.and_then(json::unquote).as_deref() == Some("required")
    }
}

impl Inventory {
    /// How many tools, resources, templates and prompts there are.
    pub fn counts(&self) -> [usize; 4] {
        [self.tools.len(), self.resources.len(), self.templates.len(), self.prompts.len()]
    }

    /// Whether a client could tell the two apart.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.revision == other.revision
            && self.supports == other.supports
            && self.capabilities.raw() == other.capabilities.raw()
            && self.instructions == other.instructions
            && are_same(&self.tools, &other.tools)
            && are_same(&self.resources, &other.resources)
            && are_same(&self.templates, &other.templates)
            && are_same(&self.prompts, &other.prompts)
    }
}

fn are_same(some: &[Item], others: &[Item]) -> bool {
    some.len() == others.len()
        && some
            .iter()
            .zip(others)
            .all(|(one, other)| one.key == other.key && one.definition.raw() == other.definition.raw())
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
