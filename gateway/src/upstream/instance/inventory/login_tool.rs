//! The one tool that a principal is offered of an upstream where it has yet to log in, and whose lists nobody can read for it before.

use super::contents::Inventory;
use super::item::Item;
use super::listing::Listing;
use crate::call::Call;
use crate::protocol::capabilities::Supports;
use crate::protocol::frame::Method;
use crate::protocol::json;
use crate::protocol::revision::Revision;
use crate::protocol::value::Object;

impl Inventory {
    /// Its name: a tool of such an upstream that has it, too, is left out.
    pub(crate) const LOGIN: &str = Item::LOGIN;

    /// That tool alone. To call it is to need a login, and that is told as everywhere.
    pub(crate) fn to_log_in(upstream: &str) -> Self {
        let text = format!(
            "Log in to `{upstream}`: its tools, resources and prompts are there once you have. The answer says where to log in, or what to run."
        );
        let definition = format!(
            "{{\"name\":\"{name}\",\"title\":{title},\"description\":{text},\"inputSchema\":{{\"type\":\"object\"}},\
             \"annotations\":{{\"title\":{title},\"readOnlyHint\":true}}}}",
            name = Self::LOGIN,
            title = json::quote(&format!("Log in to {upstream}")),
            text = json::quote(&text)
        );
        let definition = Object::parse(definition.into()).expect("what we write is an object");
        Self {
            tools: Listing::of(vec![Item::of_gateway(Self::LOGIN.into(), definition)]),
            supports: Supports { tools: true, ..Supports::default() },
            ..Self::empty(Revision::V2025_11_25)
        }
    }

    /// Whether a call is of that tool.
    pub(crate) fn is_login(call: &Call) -> bool {
        call.method == Method::ToolsCall && call.target_name().is_some_and(|name| name == Self::LOGIN)
    }

    /// Whether it is all that is offered.
    pub(crate) fn offers_login(&self) -> bool {
        self.tools.iter().any(Item::is_of_gateway)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_can_be_offered_as_any_tool_and_names_its_upstream() {
        let alone = Inventory::to_log_in("up");
        let tool = &alone.tools[0];
        assert!(
            tool.is_of_gateway()
                && *tool.key == *Inventory::LOGIN
                && alone.counts() == [1, 0, 0, 0]
                && alone.offers_login()
        );
        let text = tool.definition.find("description").and_then(json::unquote).unwrap();
        assert!(text.starts_with("Log in to `up`"), "{text}");
        assert!(!Inventory::empty(Revision::V2025_11_25).offers_login());
    }
}
