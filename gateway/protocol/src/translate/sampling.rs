//! Questions for the client's model, and what it answers.

use super::definition::definition;
use super::edit::Fate;
use super::{blocks, edit, hop};
use crate::json;
use crate::revision::{Features, Gap, Revision};
use crate::value::{Key, Object};

/// The question in the words of revision `to`; `None` where it cannot be put so.
pub(super) fn question(params: &Object, gap: Gap, from: Revision, to: Revision) -> Option<Vec<u8>> {
    let asks_for_tools = params.find("tools").is_some_and(|tools| edit::each(tools).next().is_some());
    let messages = params.find("messages").unwrap_or(b"[]");
    if gap.lost.has(Features::BLOCKS) && asks_for_tools || !edit::each(messages).all(|one| can_be_said(one, gap)) {
        return None;
    }
    let told = edit::members(params.raw(), |key, value| match key {
        "messages" => Fate::of(edit::elements(value, |one| message(one, gap))),
        "tools" if gap.lost.has(Features::BLOCKS) => Fate::Goes,
        "toolChoice" => Fate::gone_if(gap.lost.has(Features::BLOCKS)),
        "tools" => Fate::of(edit::elements(value, |tool| changed(tool, from, to))),
        "task" => Fate::gone_if(gap.lost.has(Features::TASKS)),
        "_meta" => hop::meta(value, gap),
        _ => Fate::Stays,
    });
    Some(told.unwrap_or_else(|| params.raw().to_vec()))
}

/// The answer in the words of revision `to`; `None` where it cannot be told so.
pub(super) fn answer(result: &Object, gap: Gap) -> Option<Vec<u8>> {
    let joined = if gap.lost.has(Features::BLOCKS) { joined(result) } else { None };
    if joined.is_none() && !can_be_said(result.raw(), gap) {
        return None;
    }
    let told = edit::members(result.raw(), |key, value| match (key, &joined) {
        ("content", Some(text)) => Fate::Becomes(blocks::words(text)),
        _ => part(key, value, gap),
    });
    Some(told.unwrap_or_else(|| result.raw().to_vec()))
}

fn part(key: &str, value: &[u8], gap: Gap) -> Fate {
    match key {
        "content" => content(value, gap),
        "_meta" => hop::meta(value, gap),
        _ => Fate::Stays,
    }
}

/// Several blocks that are text alone, as one text.
fn joined(result: &Object) -> Option<String> {
    let blocks: Vec<_> = edit::each(result.find("content").filter(|raw| raw.starts_with(b"["))?).collect();
    let text = |block: &&[u8]| {
        edit::text(block, "text").filter(|_| edit::text(block, "type").is_some_and(|kind| kind == "text"))
    };
    let texts: Option<Vec<_>> = blocks.iter().map(text).collect();
    texts.filter(|texts| texts.len() > 1).map(|texts| texts.join("\n"))
}

fn changed(tool: &[u8], from: Revision, to: Revision) -> Option<Vec<u8>> {
    match definition(tool, from, to) {
        std::borrow::Cow::Owned(told) => Some(told),
        std::borrow::Cow::Borrowed(_) => None,
    }
}

/// Whether the receiver has what this message consists of: so many blocks, of these kinds.
fn can_be_said(message: &[u8], gap: Gap) -> bool {
    let Some(content) = json::get(message, "content") else { return true };
    let blocks: Vec<_> = if content.starts_with(b"[") { edit::each(content).collect() } else { vec![content] };
    let is_of_tools = |block: &&[u8]| edit::text(block, "type").is_some_and(|kind| kind.starts_with("tool_"));
    let is_one = matches!(blocks[..], [only] if only.starts_with(b"{"));
    let is_too_much = gap.lost.has(Features::BLOCKS) && (!is_one || blocks.iter().any(is_of_tools));
    let is_unheard = gap.lost.has(Features::AUDIO) && blocks.iter().any(|block| blocks::is_sound(block));
    !is_too_much && !is_unheard
}

fn message(raw: &[u8], gap: Gap) -> Option<Vec<u8>> {
    edit::members(raw, |key, value| match key {
        "content" => content(value, gap),
        "_meta" => Fate::gone_if(gap.lost.has(Features::BLOCKS)),
        _ => Fate::Stays,
    })
}

/// One block, or an array of them.
fn content(raw: &[u8], gap: Gap) -> Fate {
    if !raw.starts_with(b"[") {
        return Fate::of(block(raw, gap));
    }
    match edit::each(raw).next() {
        Some(only) if gap.lost.has(Features::BLOCKS) => {
            Fate::Becomes(block(only, gap).unwrap_or_else(|| only.to_vec()))
        }
        _ => Fate::of(edit::elements(raw, |one| block(one, gap))),
    }
}

fn block(raw: &[u8], gap: Gap) -> Option<Vec<u8>> {
    if gap.lost.has(Features::ANY_JSON) && edit::text(raw, "type").is_some_and(|kind| kind == "tool_result") {
        return tool_result(raw);
    }
    blocks::single(raw, gap.lost)
}

/// A tool's result inside a message, whose structured part is no object.
fn tool_result(raw: &[u8]) -> Option<Vec<u8>> {
    let object = Object::parse(bytes::Bytes::copy_from_slice(raw)).ok()?;
    let content = object.get(Key::Content).unwrap_or(b"[]");
    let gone = crate::translate::structured::gone(&object, content, Features::ANY_JSON)?;
    let said = gone.said.map(|value| edit::append_words(content, value));
    edit::members(raw, |key, _| match key {
        "structuredContent" => Fate::Goes,
        "content" => said.clone().map_or(Fate::Stays, Fate::Becomes),
        _ => Fate::Stays,
    })
}
