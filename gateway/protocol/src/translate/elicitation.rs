//! Questions for the person, by a form or by a page, and what the person answers.

use super::edit::Fate;
use super::{edit, hop};
use crate::json;
use crate::revision::{Features, Gap, Revision};
use crate::value::{Key, Object};

/// The question in the words of revision `to`; `None` where it cannot be put so.
pub(super) fn question(params: &Object, gap: Gap, to: Revision) -> Option<Vec<u8>> {
    let has = Features::of(to);
    let is_form = params.find("mode").is_none_or(|mode| json::unquote(mode).as_deref() == Some("form"));
    let schema = params.find("requestedSchema");
    let can_be_put = match is_form {
        true => has.has(Features::FORMS) && (has.has(Features::CHOICES) || schema.is_none_or(is_plain)),
        false => has.has(Features::CHOICES),
    };
    if !can_be_put {
        return None;
    }
    let told = edit::members(params.raw(), |key, value| match key {
        "mode" => Fate::gone_if(gap.lost.has(Features::CHOICES)),
        "elicitationId" => Fate::gone_if(gap.lost.has(Features::PAGE_IDS)),
        "task" => Fate::gone_if(gap.lost.has(Features::TASKS)),
        "_meta" => hop::meta(value, gap),
        "requestedSchema" => Fate::of(form(value, gap)),
        _ => Fate::Stays,
    });
    Some(told.unwrap_or_else(|| params.raw().to_vec()))
}

/// The answer in the words of revision `to`; `None` where it cannot be told so.
pub(super) fn answer(result: &Object, gap: Gap) -> Option<Vec<u8>> {
    let is_list = |content: &[u8]| {
        json::Members::of(content).into_iter().flatten().flatten().any(|member| content[member.value] == b'[')
    };
    if gap.lost.has(Features::CHOICES) && result.get(Key::Content).is_some_and(is_list) {
        return None;
    }
    let told = edit::members(result.raw(), |key, value| match key {
        "_meta" => hop::meta(value, gap),
        _ => Fate::Stays,
    });
    Some(told.unwrap_or_else(|| result.raw().to_vec()))
}

fn fields(schema: &[u8]) -> Vec<&[u8]> {
    let all = json::get(schema, "properties").unwrap_or(b"{}");
    let members = json::Members::of(all).into_iter().flatten().flatten();
    members.map(|member| &all[member.value..member.end]).collect()
}

/// Whether every field takes one value, and every choice among titles names its values.
fn is_plain(schema: &[u8]) -> bool {
    let is_plain = |field: &[u8]| {
        let takes_many = edit::text(field, "type").is_some_and(|kind| kind == "array");
        !takes_many && json::get(field, "oneOf").is_none_or(|choices| titled(choices).is_some())
    };
    fields(schema).into_iter().all(is_plain)
}

/// A form's schema; `None` where nothing changes.
fn form(schema: &[u8], gap: Gap) -> Option<Vec<u8>> {
    let change = if gap.lost.has(Features::CHOICES) {
        plainer
    } else if gap.gained.has(Features::CHOICES) {
        richer
    } else {
        return None;
    };
    edit::members(schema, |key, value| match key {
        "properties" => Fate::of(edit::members(value, |_, field| Fate::of(change(field)))),
        "$schema" => Fate::gone_if(gap.lost.has(Features::CHOICES)),
        _ => Fate::Stays,
    })
}

/// A field with its titles beside its values, and without a default where only yes and no may have one.
fn plainer(field: &[u8]) -> Option<Vec<u8>> {
    let is_boolean = edit::text(field, "type").is_some_and(|kind| kind == "boolean");
    edit::members(field, |key, value| match key {
        "oneOf" => titled(value).map_or(Fate::Stays, |(values, titles)| {
            let (values, titles) = (values.join(","), titles.join(","));
            Fate::Instead(format!("\"enum\":[{values}],\"enumNames\":[{titles}]").into())
        }),
        "default" => Fate::gone_if(!is_boolean),
        _ => Fate::Stays,
    })
}

/// A field whose titles stood beside its values, with a title for each value.
fn richer(field: &[u8]) -> Option<Vec<u8>> {
    let (values, titles) = (json::get(field, "enum")?, json::get(field, "enumNames")?);
    let (values, titles) = (edit::each(values), edit::each(titles));
    let (values, titles): (Vec<_>, Vec<_>) = (values.collect(), titles.collect());
    let are_texts = values.iter().chain(&titles).all(|raw| raw.starts_with(b"\""));
    if !are_texts || values.is_empty() || values.len() != titles.len() {
        return None;
    }
    let choices = values
        .iter()
        .zip(&titles)
        .map(|(value, title)| [&b"{\"const\":"[..], value, b",\"title\":", title, b"}"].concat());
    let mut choices = Some([&b"\"oneOf\":["[..], &choices.collect::<Vec<_>>().join(&b','), b"]"].concat());
    edit::members(field, |key, _| match key {
        "enum" => choices.take().map_or(Fate::Goes, Fate::Instead),
        "enumNames" => Fate::Goes,
        _ => Fate::Stays,
    })
}

/// The values and the titles of a choice, raw; `None` where one has none.
fn titled(choices: &[u8]) -> Option<(Vec<&str>, Vec<&str>)> {
    let mut all = (Vec::new(), Vec::new());
    for place in json::elements(choices).ok()? {
        let choice = &choices[place];
        let text = |key| json::get(choice, key).filter(|raw| raw.starts_with(b"\""));
        let (value, title) = (text("const")?, text("title").or(text("const"))?);
        all.0.push(std::str::from_utf8(value).ok()?);
        all.1.push(std::str::from_utf8(title).ok()?);
    }
    Some(all)
}
