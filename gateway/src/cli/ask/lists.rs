//! `trunkline tools`, `resources`, `prompts`: what clients are offered.

use std::io::Write;

use anyhow::anyhow;
use serde_json::{Value, json};

use super::session::Session;
use crate::cli::args::setup::List;
use crate::cli::look::Row;
use crate::cli::process::table::{Line, Room};
use crate::cli::process::{Failure, answer};
use crate::config::fault::printable;

/// So many characters of a description are shown.
const SHOWN: usize = 80;

/// Prints a list; `key` is its key in the answer, `name` that by which an item is asked for.
pub(crate) fn run(list: &List, key: &str, name: &str) -> Result<(), Failure> {
    let mut session = Session::open(&list.shared)?;
    let mut items = session.list(&format!("{key}/list"), key)?;
    if let Some(part) = &list.name {
        // An upstream by its name, which begins those of its tools; or a part of a name.
        items.retain(|item| item[name].as_str().is_some_and(|known| known.contains(part.as_str())));
    }
    let why_none = if items.is_empty() { why_none(&session, list.name.as_deref(), key) } else { None };
    drop(session);
    let mut out = answer();
    if list.json {
        out.json(&format!("{:#}", json!({ key: items })))?;
    }
    if let Some(why) = why_none {
        return Err(anyhow!(why).into());
    }
    if list.json {
        return Ok(());
    }
    let width = items.iter().filter_map(|item| item[name].as_str()).map(|name| name.chars().count()).max();
    let columns = Room::of_stdout().columns;
    for item in &items {
        writeln!(out, "{}", line(item, name, width.unwrap_or_default(), columns))?;
    }
    match items.len() {
        0 => writeln!(out, "no {key}")?,
        1 => writeln!(out, "1 {}", key.trim_end_matches('s'))?,
        many => writeln!(out, "{many} {key}")?,
    }
    Ok(())
}

/// An item in a line that a terminal has room for.
fn line(item: &Value, name: &str, width: usize, columns: usize) -> String {
    let named = printable(item[name].as_str().unwrap_or_default());
    let whole = format!("{named:width$}  {}", described(item));
    Line::plain(whole.trim_end().to_owned()).cut(columns, false)
}

/// Why a list is empty, where that is no answer: its upstreams do not work, or there is none of the name.
fn why_none(session: &Session, name: Option<&str>, key: &str) -> Option<String> {
    let whole = session.upstreams(|row| name.is_none_or(|name| row.name == name))?;
    let Some(name) = name else { return none_works(&whole.upstreams, key) };
    match whole.upstreams.iter().find(|row| row.name == name) {
        Some(row) => Some(format!("no {key}: {}", row.why_not()?)),
        None if whole.is_disabled(name) => Some(whole.unknown(name)),
        None => Some(format!("none of the {key} has `{}` in its name, and {}", printable(name), whole.unknown(name))),
    }
}

/// Why there is nothing at all, where no upstream takes calls.
fn none_works(rows: &[Row], key: &str) -> Option<String> {
    if rows.is_empty() || rows.iter().any(|row| row.is_up() || row.state == "idle") {
        return None;
    }
    // Why each of them fails was said by the gateway, where it was started for this.
    let is_coming = |row: &&Row| row.state == "starting" && row.ailment().is_none();
    let named = |rows: Vec<&Row>| rows.iter().map(|row| printable(&row.name)).collect::<Vec<_>>().join(", ");
    let (coming, broken): (Vec<_>, Vec<_>) = rows.iter().partition(is_coming);
    let starting = format!("still starting ({}): try again", named(coming.clone()));
    let failed = format!("works ({}); `trunkline doctor` says what to do", named(broken.clone()));
    Some(match (coming.is_empty(), broken.is_empty()) {
        (true, _) => format!("no {key}: none of the upstreams {failed}"),
        (_, true) => format!("no {key} yet: all upstreams are {starting}"),
        _ => format!("no {key} yet: some upstreams are {starting}; none of the others {failed}"),
    })
}

/// The first line of a description.
fn described(item: &Value) -> String {
    let text = item["description"].as_str().or_else(|| item["title"].as_str()).unwrap_or_default();
    let line = text.trim().lines().next().unwrap_or_default();
    let short: String = line.chars().take(SHOWN).collect();
    let more = if line.chars().count() > SHOWN { "…" } else { "" };
    printable(&format!("{short}{more}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_takes_one_line_of_a_terminal_and_a_pipe_takes_what_there_is() {
        let item = json!({ "name": "files__read", "description": "Reads a file\nand more" });
        assert_eq!(line(&item, "name", 13, usize::MAX), "files__read    Reads a file");
        assert_eq!(line(&item, "name", 13, 20), "files__read    Read…");
        assert_eq!(line(&json!({ "name": "x" }), "name", 13, 20), "x");
    }
}
