//! `trunkline tools`, `resources`, `prompts`: what clients are offered.

use std::io::Write;

use anyhow::anyhow;
use serde_json::{Value, json};

use super::session::Session;
use crate::cli::args::setup::List;
use crate::cli::process::{Failure, answer};
use crate::config::fault::printable;

/// So many characters of a description are shown.
const SHOWN: usize = 80;

/// Prints a list; `key` is its key in the answer, `name` that by which an item is asked for.
pub(crate) fn run(list: &List, key: &str, name: &str) -> Result<(), Failure> {
    let mut session = Session::open(&list.shared)?;
    let mut items = session.list(&format!("{key}/list"), key)?;
    // Why each of them fails was said by the gateway that was started for this.
    let broken = if items.is_empty() { session.all_broken() } else { None };
    drop(session);
    if let Some(prefix) = &list.name {
        // An upstream by its name, which begins those of its tools; or a part of a name.
        items.retain(|item| item[name].as_str().is_some_and(|known| known.contains(prefix.as_str())));
    }
    let mut out = answer();
    if list.json {
        out.json(&format!("{:#}", json!({ key: items })))?;
        return failed(broken, key);
    }
    if broken.is_some() {
        return failed(broken, key);
    }
    let width = items.iter().filter_map(|item| item[name].as_str()).map(|name| name.chars().count()).max();
    for item in &items {
        let named = printable(item[name].as_str().unwrap_or_default());
        writeln!(
            out,
            "{}",
            format!("{named:width$}  {}", described(item), width = width.unwrap_or_default()).trim_end()
        )?;
    }
    match items.len() {
        0 => writeln!(out, "no {key}")?,
        1 => writeln!(out, "1 {}", key.trim_end_matches('s'))?,
        many => writeln!(out, "{many} {key}")?,
    }
    Ok(())
}

/// An empty list of upstreams that all fail is no answer.
fn failed(broken: Option<String>, key: &str) -> Result<(), Failure> {
    let said = |names| anyhow!("no {key}: none of the upstreams works ({names}); `trunkline doctor` says what to do");
    broken.map_or(Ok(()), |names| Err(said(names).into()))
}

/// The first line of a description.
fn described(item: &Value) -> String {
    let text = item["description"].as_str().or_else(|| item["title"].as_str()).unwrap_or_default();
    let line = text.trim().lines().next().unwrap_or_default();
    let short: String = line.chars().take(SHOWN).collect();
    let more = if line.chars().count() > SHOWN { "…" } else { "" };
    printable(&format!("{short}{more}"))
}
