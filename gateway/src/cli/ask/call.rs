//! `trunkline call TOOL key=value…`: one call, its text on stdout.

use std::io::Write;

use anyhow::anyhow;
use serde_json::Value;
use serde_json::value::to_raw_value;

use super::approve;
use super::arguments::arguments;
use super::awaited::Wanted;
use super::session::{Refused, Session};
use crate::cli::args::setup::Call;
use crate::cli::look::Row;
use crate::cli::process::failure::note;
use crate::cli::process::{Failure, answer};
use crate::config::fault::printable;
use crate::config::import::nearest;

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
    // Of a name that an upstream may have which is not there the gateway says how that one stands; of a tool that is held, why.
    let is_held = || approve::held(&session).iter().any(|(_, name)| *name == call.tool);
    let is_known =
        found.is_some() || is_held() || whole.is_some_and(|whole| whole.upstreams.iter().any(|row| !row.is_up()));
    let tool = to_raw_value(&call.tool).map_err(anyhow::Error::from)?;
    let params = [("name", tool), ("arguments", arguments)];
    let asked = is_known.then(|| session.ask_as_written("tools/call", params.into())).transpose();
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
        return Err(anyhow!(call.shared.typed(&blocks().collect::<Vec<_>>().join("\n"))).into());
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
