//! `trunkline call TOOL key=value…`: one call, its text on stdout.

use std::io::Write;

use anyhow::anyhow;
use serde_json::{Map, Value, json};

use super::awaited::Wanted;
use super::session::{Refused, Session};
use crate::cli::args::setup::Call;
use crate::cli::look::Row;
use crate::cli::process::failure::note;
use crate::cli::process::{Failure, answer};
use crate::config::fault::printable;
use crate::config::import::{nearest, unclosed};

/// What marks a result that says, in words for a model, what the gateway refuses.
const REFUSAL: &str = "trunkline/refusal";

/// Calls the tool and prints what it says. A result that is an error ends with code 1.
pub(crate) fn run(call: &Call) -> Result<(), Failure> {
    // What nobody can read is refused before any server is started for it.
    arguments(&call.arguments, &Value::Null).map_err(|why| anyhow!(why))?;
    let mut session = Session::open(&call.shared, Wanted::Tool(&call.tool))?;
    let tools = session.wanted("tools", "name")?;
    let found = tools.iter().find(|tool| tool["name"] == call.tool.as_str());
    let schema = found.map_or(&Value::Null, |tool| &tool["inputSchema"]["properties"]);
    let arguments = arguments(&call.arguments, schema).map_err(|why| anyhow!(why))?;
    let whole = if found.is_none() { session.upstreams(|_| false) } else { None };
    if let Some(whole) = &whole
        && let Some(off) = whole.absent_owner(&call.tool)
    {
        return Err(anyhow!(call.shared.typed(&whole.unknown(off))).into());
    }
    // A gateway that was started for this is gone before anybody can look at it.
    if let Some(why) =
        whole.as_ref().filter(|_| session.is_of_own()).and_then(|whole| why_not(&whole.upstreams, &call.tool))
    {
        return Err(anyhow!(call.shared.typed(&why)).into());
    }
    let left_out = whole.as_ref().and_then(|whole| whole.told_left_out(session.is_of_own()));
    // Of a name that an upstream may have which is not there the gateway says how that one stands.
    let is_known = found.is_some() || whole.is_some_and(|whole| whole.upstreams.iter().any(|row| !row.is_up()));
    let params = json!({ "name": call.tool, "arguments": arguments });
    let asked = is_known.then(|| session.ask("tools/call", params)).transpose();
    let result = match asked {
        Ok(Some(result)) => result,
        Err(why) if found.is_some() || is_of_upstreams(&why) => return Err(why.into()),
        Ok(None) | Err(_) => {
            // It may be one of theirs.
            left_out.iter().for_each(|told| note(&call.shared.typed(told)));
            return Err(anyhow!(call.shared.typed(&unknown(&call.tool, &tools))).into());
        }
    };
    let blocks = || result["content"].as_array().into_iter().flatten().map(text);
    if !call.json && result["isError"] == true && result["_meta"][REFUSAL].is_object() {
        return Err(anyhow!(blocks().collect::<Vec<_>>().join("\n")).into());
    }
    let mut out = answer();
    match call.json {
        true => out.json(&format!("{result:#}"))?,
        false => blocks().try_for_each(|block| writeln!(out, "{block}"))?,
    }
    if result["isError"] == true { Err(Failure::Found) } else { Ok(()) }
}

/// Whether a call was refused for how an upstream stands that may have the tool.
fn is_of_upstreams(why: &anyhow::Error) -> bool {
    why.downcast_ref::<Refused>().is_some_and(|refused| refused.is_of_upstreams)
}

/// Why a tool is not there, where the name of an upstream that takes no calls begins its own.
fn why_not(rows: &[Row], tool: &str) -> Option<String> {
    let owns = |row: &&Row| tool.strip_prefix(&row.name).is_some_and(|rest| rest.starts_with("__"));
    // One that is still starting may list it in a moment.
    let why = rows.iter().find(owns).filter(|row| row.ailment().is_some())?.why_not(true)?;
    Some(format!("`tools/call` of `{}` was not sent: {why}", printable(tool)))
}

/// That no tool has the name, and what may be meant.
fn unknown(tool: &str, tools: &[Value]) -> String {
    let own = |name: &&str| name.ends_with(tool);
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    let meant = names.iter().copied().find(own).or_else(|| nearest(tool, &names));
    let meant =
        meant.map_or_else(|| "`trunkline tools` lists them".to_owned(), |name| format!("did you mean `{name}`?"));
    format!("no tool `{}`: {}", printable(tool), printable(&meant))
}

/// A block of a result, as text.
fn text(block: &Value) -> String {
    let said = |key: &str| block[key].as_str().unwrap_or_default();
    match said("type") {
        "text" => said("text").lines().map(printable).collect::<Vec<_>>().join("\n"),
        "resource_link" => format!("[resource {}]", printable(said("uri"))),
        "resource" => match block["resource"]["text"].as_str() {
            Some(text) => text.lines().map(printable).collect::<Vec<_>>().join("\n"),
            None => format!("[resource {}]", printable(block["resource"]["uri"].as_str().unwrap_or_default())),
        },
        kind => {
            format!("[{} {}, {} bytes in base64]", printable(kind), printable(said("mimeType")), said("data").len())
        }
    }
}

/// One JSON object, or pairs `key=value`. A value is read as JSON where the tool does not ask for a text.
fn arguments(given: &[String], properties: &Value) -> Result<Value, String> {
    match given {
        [one] if one.trim_start().starts_with('{') => return object(one),
        [first, _, ..] if first.trim_start().starts_with('{') => {
            return Err(format!("the shell has made several arguments of one object; {EXAMPLE}"));
        }
        _ => {}
    }
    let mut found = Map::new();
    for pair in given {
        let (key, value) =
            pair.split_once('=').ok_or_else(|| format!("expected key=value or one JSON object, not `{pair}`"))?;
        if key.is_empty() {
            return Err(format!("`{pair}` has no key: write key=value"));
        }
        let value = match takes_text(&properties[key], value) {
            true => value.into(),
            false => serde_json::from_str(value).unwrap_or_else(|_| value.into()),
        };
        if found.insert(key.to_owned(), value).is_some() {
            return Err(format!("`{key}` is given twice"));
        }
    }
    Ok(found.into())
}

/// What a person types in place of what is no object.
const EXAMPLE: &str = "write key=value, or one object in single quotes: '{\"key\": \"value\"}'";

/// One JSON object; or what is wrong with it, and how it is written.
fn object(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| {
        let before: usize = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
        let near = (before + error.column().saturating_sub(1)).min(text.len());
        let at = (0..=near).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
        let around = |part: &str| text[..at].ends_with(part) || text[at..].starts_with(part);
        let said = error.to_string();
        let why = match () {
            () if error.is_eof() => match unclosed(text) {
                Some(closing) => format!("a `{closing}` is missing at the end"),
                None => "it ends too early".to_owned(),
            },
            () if text.contains(['\u{201c}', '\u{201d}']) => "it has curly quotes in place of straight ones".to_owned(),
            () if around("'") => "it has single quotes in place of double ones".to_owned(),
            () if said.starts_with("trailing characters") => "it goes on behind its end".to_owned(),
            () if !text.contains('"') => "names and texts need double quotes in it".to_owned(),
            () => {
                let (number, found) = (text[..at].chars().count() + 1, text[at..].chars().next().unwrap_or(' '));
                format!("character {number}, `{}`, is not expected there", printable(&found.to_string()))
            }
        };
        format!("the argument is not a JSON object: {why}; {EXAMPLE}")
    })
}

/// Whether a tool takes the value as it is typed: it asks for a text, alone or beside null, or lists the text among its values.
fn takes_text(schema: &Value, value: &str) -> bool {
    let is_kind = |kind: &Value| kind == "string";
    let is_text_or_null = |kinds: &Vec<Value>| {
        kinds.iter().any(is_kind) && kinds.iter().all(|kind| is_kind(kind) || kind == "null") && value != "null"
    };
    let is_listed = |all: &Vec<Value>| all.iter().any(|one| one == value);
    is_kind(&schema["type"])
        || schema["type"].as_array().is_some_and(is_text_or_null)
        || schema["enum"].as_array().is_some_and(is_listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_what_the_tool_asks_for() {
        let properties = json!({ "id": { "type": "string" }, "count": { "type": "integer" } });
        let of =
            |given: &[&str]| arguments(&given.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>(), &properties);
        assert_eq!(
            of(&["id=1", "count=2", "more=x y", "list=[1]"]),
            Ok(json!({ "id": "1", "count": 2, "more": "x y", "list": [1] }))
        );
        assert_eq!(of(&["{\"a\": 1}"]), Ok(json!({ "a": 1 })));
        assert_eq!(of(&[]), Ok(json!({})));
        assert!(of(&["x"]).is_err() && of(&["{x"]).is_err());
        assert!(of(&["a=1", "a=2"]).is_err_and(|why| why == "`a` is given twice") && of(&["=1"]).is_err());
        for (given, why) in [
            (&["{\"a\":"][..], "a `}` is missing at the end"),
            (&["{\"a\": \"x"], "a `\"` is missing at the end"),
            (&["{\"a\": [1"], "a `]` is missing at the end"),
            (&["{a: 1}"], "names and texts need double quotes in it"),
            (&["{'a': 1}"], "it has single quotes in place of double ones"),
            (&["{\u{201c}a\u{201d}: 1}"], "it has curly quotes in place of straight ones"),
            (&["{\"a\": 1}}"], "it goes on behind its end"),
            (&["{\"a\": x}"], "character 7, `x`, is not expected there"),
            (&["{\"é\": x}"], "character 7, `x`, is not expected there"),
        ] {
            assert_eq!(of(given), Err(format!("the argument is not a JSON object: {why}; {EXAMPLE}")), "{given:?}");
        }
        let split = format!("the shell has made several arguments of one object; {EXAMPLE}");
        assert_eq!(of(&["{a:", "1}"]), Err(split));
        let properties = json!({ "a": { "type": ["string", "null"] }, "b": { "enum": ["1", 2] }, "c": { "type": ["string", "integer"] } });
        let given = ["a=5", "b=1", "c=5"].map(str::to_owned);
        assert_eq!(arguments(&given, &properties), Ok(json!({ "a": "5", "b": "1", "c": 5 })));
        assert_eq!(arguments(&["a=null".to_owned(), "b=2".to_owned()], &properties), Ok(json!({ "a": null, "b": 2 })));
    }
}
