//! What an upstream can be asked, as its declared capabilities have it.

use super::declared::EXTENSION_TASKS;
use crate::json;
use crate::revision::Revision;
use crate::value::Object;

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
    pub fn of(capabilities: &Object, revision: Revision) -> Self {
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
