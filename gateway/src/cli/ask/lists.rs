//! `trunkline tools`, `resources`, `prompts`: what clients are offered.

use std::collections::{BTreeMap, HashSet};
use std::io::Write;

use anyhow::anyhow;
use serde_json::{Value, json};

use super::approve;
use super::awaited::Wanted;
use super::session::Session;
use crate::cli::args::setup::List;
use crate::cli::look::{Row, counted};
use crate::cli::process::failure::note;
use crate::cli::process::table::{Line, Room};
use crate::cli::process::{Failure, answer};
use crate::config::fault::printable;

/// So many characters of a description are shown.
const SHOWN: usize = 80;

/// Prints a list; `key` is its key in the answer, `name` that by which an item is asked for.
pub(crate) fn run(list: &List, key: &str, name: &str) -> Result<(), Failure> {
    let mut session = Session::open(&list.shared, Wanted::List(list.name.as_deref()))?;
    let mut items = session.wanted(key, name)?;
    if let Some(part) = &list.name {
        // An upstream by its name, or a part of a name.
        let own = owned(&session, part, key);
        items.retain(|item| item[name].as_str().is_some_and(|known| is_meant(known, part, own.as_ref())));
    }
    let held = if key == "tools" { held(&session, list) } else { BTreeMap::new() };
    for (upstream, count) in &held {
        let (count, upstream) = (counted(*count, "tool"), printable(upstream));
        let told = format!("note: {count} of `{upstream}` held until approved; run `trunkline approve {upstream}`");
        note(&list.shared.typed(&told));
    }
    let why_none = if items.is_empty() && held.is_empty() { why_none(&session, list, key) } else { None };
    // Nobody can look at the upstreams of a gateway that ends with this.
    if why_none.is_none() || list.name.is_none() && session.is_of_own() {
        missing(&session, list, key).iter().for_each(|one| note(&list.shared.typed(one)));
    }
    drop(session);
    let mut out = answer();
    if list.json {
        out.json(&format!("{:#}", json!({ key: items })))?;
    }
    if let Some(why) = why_none {
        return Err(anyhow!(list.shared.typed(&why)).into());
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

/// How many tools of each upstream would be in the list, if somebody had approved them.
fn held(session: &Session, list: &List) -> BTreeMap<String, usize> {
    let (all, mut held) = (approve::held(session), BTreeMap::new());
    let is_upstream = |part: &String| all.iter().any(|(upstream, _)| upstream == part);
    for (upstream, name) in &all {
        let is_meant = list.name.as_ref().is_none_or(|part| match is_upstream(part) {
            true => upstream == part,
            false => name.contains(part),
        });
        if is_meant {
            *held.entry(upstream.clone()).or_default() += 1;
        }
    }
    held
}

/// What the upstream of this name has in a list, as far as that is known. Nothing of one that is not there: what others have with its name
/// in theirs is not its own. `None` where a name is looked for.
fn owned(session: &Session, name: &str, key: &str) -> Option<Owned> {
    let whole = session.whole()?;
    let is_there = whole.upstreams.iter().find(|row| row.name == name).map(|row| row.items.is_some());
    match is_there {
        Some(true) if key == "tools" => {
            let owners = session.owners()?;
            Some(owners.into_iter().filter(|(_, owner)| owner == name).map(|(tool, _)| tool).collect())
        }
        Some(true) => None,
        Some(false) => Some(Owned::new()),
        None => whole.is_absent(name).then(Owned::new),
    }
}

/// Names of what an upstream has.
type Owned = HashSet<String>;

fn is_meant(known: &str, part: &str, own: Option<&Owned>) -> bool {
    own.map_or_else(|| known.contains(part), |own| own.contains(known))
}

/// An item in a line that a terminal has room for.
fn line(item: &Value, name: &str, width: usize, columns: usize) -> String {
    let named = printable(item[name].as_str().unwrap_or_default());
    let whole = format!("{named:width$}  {}", described(item));
    Line::plain(whole.trim_end().to_owned()).cut(columns, false)
}

/// Why a list is empty, where that is no answer: its upstreams do not work, or there is none of the name.
fn why_none(session: &Session, list: &List, key: &str) -> Option<String> {
    let (name, is_of_own) = (list.name.as_deref(), session.is_of_own());
    let whole = session.upstreams(|row| name.is_none_or(|name| row.name == name))?;
    let Some(name) = name else {
        let all_out = whole.told_left_out(is_of_own).filter(|_| whole.upstreams.is_empty());
        return all_out
            .map(|told| format!("no {key}: {told}"))
            .or_else(|| none_works(&whole.upstreams, key, is_of_own));
    };
    match whole.upstreams.iter().find(|row| row.name == name) {
        Some(row) => Some(format!("no {key}: {}", row.why_not(is_of_own)?)),
        None if whole.is_absent(name) => Some(whole.unknown(name)),
        None => Some(format!("none of the {key} has `{}` in its name, and {}", printable(name), whole.unknown(name))),
    }
}

/// The upstreams of which nothing is in a list of all, and why. That all are left out is why there is no list.
fn missing(session: &Session, list: &List, key: &str) -> Vec<String> {
    let Some(whole) = session.upstreams(|_| false) else { return Vec::new() };
    let rows = &whole.upstreams;
    if rows.is_empty() || rows.iter().any(|row| Some(&row.name) == list.name.as_ref()) {
        return Vec::new();
    }
    let is_of_own = session.is_of_own();
    let failing = rows.iter().filter(|row| row.items.is_none()).filter_map(|row| absent(row, key, is_of_own));
    let left_out = whole.told_left_out(is_of_own);
    failing.chain(left_out.map(|told| format!("not listed: {told}"))).collect()
}

/// Why nothing of an upstream is in a list.
fn absent(row: &Row, key: &str, is_of_own: bool) -> Option<String> {
    let why = match row.state == "starting" && row.ailment().is_none() {
        false => row.why_not(is_of_own)?,
        true => {
            let name = printable(&row.name);
            let cause = row.cause.as_deref().map(|cause| format!(": {}", printable(cause.trim()))).unwrap_or_default();
            let then =
                if is_of_own { format!("`trunkline {key} {name}` waits for it") } else { "try again".to_owned() };
            format!("upstream `{name}` is still starting{cause}; {then}")
        }
    };
    Some(format!("not listed: {why}"))
}

/// Why there is nothing at all, where no upstream takes calls.
fn none_works(rows: &[Row], key: &str, is_of_own: bool) -> Option<String> {
    if rows.is_empty() || rows.iter().any(|row| row.is_up() || row.state == "idle") {
        return None;
    }
    let is_coming = |row: &&Row| row.is_coming();
    let named = |rows: Vec<&Row>| rows.iter().map(|row| printable(&row.name)).collect::<Vec<_>>().join(", ");
    let (coming, broken): (Vec<_>, Vec<_>) = rows.iter().partition(is_coming);
    let then = match coming.first().filter(|_| is_of_own) {
        Some(row) => format!("`trunkline {key} {}` waits for it", printable(&row.name)),
        None => "try again".to_owned(),
    };
    let starting = format!("still starting ({}): {then}", named(coming.clone()));
    // Beside the list of a gateway that was started for it, what to do is told of each.
    let then = if is_of_own { "" } else { "; `trunkline doctor` says what to do" };
    let failed = format!("works ({}){then}", named(broken.clone()));
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
    fn an_upstream_of_which_nothing_is_listed_is_named_with_what_keeps_it() {
        let row = |state: &str| -> Row {
            let own = r#""name":"x","transport":"stdio","since_seconds":1,"restarts":0"#;
            serde_json::from_str(&format!("{{{own},{state}}}")).unwrap()
        };
        let starting = row(r#""state":"starting","cause":"no answer yet""#);
        for (is_of_own, then) in [(true, "`trunkline prompts x` waits for it"), (false, "try again")] {
            let told = absent(&starting, "prompts", is_of_own).unwrap();
            assert_eq!(told, format!("not listed: upstream `x` is still starting: no answer yet; {then}"));
        }
        let failed = row(r#""state":"failed","cause":"gone""#);
        let told = "not listed: upstream `x` is failed: gone; look at `trunkline status x`";
        assert_eq!(absent(&failed, "tools", false).unwrap(), told);
        assert_eq!(absent(&row(r#""state":"idle""#), "tools", true), None);
        let works = |is_of_own| none_works(std::slice::from_ref(&failed), "tools", is_of_own).unwrap();
        assert_eq!(works(true), "no tools: none of the upstreams works (x)");
        assert_eq!(works(false), "no tools: none of the upstreams works (x); `trunkline doctor` says what to do");
        let yet = |is_of_own| none_works(&[row(r#""state":"starting""#)], "tools", is_of_own).unwrap();
        assert_eq!(yet(false), "no tools yet: all upstreams are still starting (x): try again");
        assert_eq!(yet(true), "no tools yet: all upstreams are still starting (x): `trunkline tools x` waits for it");
    }

    #[test]
    fn an_item_takes_one_line_of_a_terminal_and_a_pipe_takes_what_there_is() {
        let item = json!({ "name": "files__read", "description": "Reads a file\nand more" });
        assert_eq!(line(&item, "name", 13, usize::MAX), "files__read    Reads a file");
        assert_eq!(line(&item, "name", 13, 20), "files__read    Read…");
        assert_eq!(line(&json!({ "name": "x" }), "name", 13, 20), "x");
    }
}
