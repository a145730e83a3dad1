//! Tools, resources, templates and prompts: members that a receiver's revision does not have.

use super::edit;
use super::edit::Fate;
use crate::frame::Method;
use crate::json;
use crate::revision::{Features, Gap, Part, Revision};
use std::borrow::Cow;

/// A tool, resource, template or prompt on its way to a peer of revision `to`.
pub fn definition(raw: &[u8], from: Revision, to: Revision) -> Cow<'_, [u8]> {
    let gap = Gap::between(Part::Definition, &Method::ToolsList, from, to);
    if gap.is_none() {
        return Cow::Borrowed(raw);
    }
    let is_tool = json::get(raw, "inputSchema").is_some();
    let lost = gap.lost;
    let told = edit::members(raw, |key, value| match key {
        "title" => Fate::gone_if(lost.has(Features::TITLES)),
        "_meta" => Fate::gone_if(lost.has(Features::PART_META)),
        "icons" => Fate::gone_if(lost.has(Features::ICONS)),
        "annotations" => Fate::gone_if(is_tool && lost.has(Features::HINTS)),
        // One revision alone has it: what anybody else says there means nothing, and what it says there nobody else knows.
        "execution" => Fate::gone_if(is_tool && gap.differs(Features::TASKS)),
        "outputSchema" => Fate::gone_if(
            is_tool && (lost.has(Features::STRUCTURED) || lost.has(Features::ANY_JSON) && !is_of_objects(value)),
        ),
        "arguments" if !is_tool && lost.has(Features::TITLES) => Fate::of(edit::elements(value, untitled)),
        _ => Fate::Stays,
    });
    told.map_or(Cow::Borrowed(raw), Cow::Owned)
}

fn untitled(argument: &[u8]) -> Option<Vec<u8>> {
    edit::members(argument, |key, _| Fate::gone_if(key == "title"))
}

/// Whether the root of a schema says that its values are objects.
fn is_of_objects(schema: &[u8]) -> bool {
    edit::text(schema, "type").is_some_and(|kind| kind == "object")
}
