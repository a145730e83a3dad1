//! `trunkline ls`: every upstream of a running gateway, a line each.

use std::io::Write;

use crate::config::fault::printable;

use super::page as look;
use super::page::Whole;
use super::row::Row;
use crate::cli::args::Look;
use crate::cli::process::table::{self, Room};
use crate::cli::process::{Failure, answer};

/// Prints the table, or the page as it is.
pub(crate) fn run(look: &Look) -> Result<(), Failure> {
    let page = look::page(look)?;
    let whole = look::parse(&page)?;
    let mut out = answer();
    if look.json {
        out.json(&page)?;
    } else {
        write!(out, "{}", listing(&whole, Room::of_stdout()))?;
    }
    Ok(())
}

/// Those that go where the terminal is narrow, the first one first.
const GOES: [usize; 4] = [4, 2, 5, 3];
const STATE: usize = 1;
const HEADINGS: [&str; 7] = ["NAME", "STATE", "SINCE", "TOOLS", "REVISION", "RESTARTS", "WHAT"];

fn listing(whole: &Whole, room: Room) -> String {
    if whole.upstreams.is_empty() && whole.disabled().is_empty() && whole.left_out().is_empty() {
        return "no upstreams are configured\n".to_owned();
    }
    let mut rows = vec![HEADINGS.map(str::to_owned).to_vec()];
    rows.extend(whole.upstreams.iter().map(|row| cells(row).to_vec()));
    rows.extend(absent(whole).map(|[name, state, why]| {
        let none = [(); HEADINGS.len() - 3].map(|()| "-".to_owned());
        [name, state].into_iter().chain(none).chain([why]).collect()
    }));
    let mut out = table::printed(&rows, &GOES, Some(STATE), room);
    if out.lines().any(|line| line.ends_with('…')) {
        out.push_str("`trunkline status NAME` shows what is cut here.\n");
    }
    if let Some(memory) = whole.limits.as_ref().map(|limits| &limits.memory).filter(|memory| memory.dropped > 0) {
        let mib = |bytes: u64| bytes / (1 << 20);
        let limit = memory.limit_bytes.map(|limit| format!(" of {} MiB", mib(limit))).unwrap_or_default();
        let (used, dropped) = (
            mib(memory.used_bytes),
            look::counted(usize::try_from(memory.dropped).unwrap_or(usize::MAX), "large message"),
        );
        out.push_str(&format!("memory: {used}{limit} in use; {dropped} dropped so far (`server.memory_limit`)\n"));
    }
    out.push_str(&whole.configuration());
    if !whole.ready {
        out.push_str("The gateway is draining: it takes no more calls.\n");
    }
    out
}

/// Those that are configured and not there: the name of each, its state, and why.
pub(super) fn absent(whole: &Whole) -> impl Iterator<Item = [String; 3]> {
    let why = "`enabled = false` in the configuration";
    let off = whole.disabled().iter().map(move |name| [printable(name), "disabled".to_owned(), why.to_owned()]);
    off.chain(whole.left_out().iter().map(|one| [printable(&one.name), "left_out".to_owned(), one.why()]))
}

fn cells(row: &Row) -> [String; HEADINGS.len()] {
    let tools = row.items.as_ref().map_or_else(|| "-".to_owned(), |items| items.tools.to_string());
    let instances = (!row.instances.is_empty()).then(|| look::counted(row.instances.len(), "instance"));
    let failed = (row.failed_starts > 0).then(|| look::counted(row.failed_starts as usize, "failed instance start"));
    let next = row.retry_in_seconds.map(|seconds| format!("next try in {}", look::time(seconds)));
    let foreign = |text: &String| printable(text.trim());
    let said = instances.into_iter().chain(failed).chain(row.cause.iter().map(foreign)).chain(next);
    let what = said.chain(row.remarks.iter().map(foreign)).collect::<Vec<_>>().join("; ");
    [
        printable(&row.name),
        printable(&row.state),
        look::time(row.since_seconds),
        tools,
        row.revision.as_deref().map_or_else(|| "-".to_owned(), printable),
        row.restarts.to_string(),
        what,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_each_in_columns() {
        let whole: Whole = serde_json::from_str(
            r#"{"ready":true,"upstreams":[
                {"name":"files","transport":"stdio","state":"ready","since_seconds":61,"restarts":0,"revision":"2025-11-25",
                 "items":{"tools":3,"resources":0,"templates":0,"prompts":0},"failed_starts":1,"remarks":["its list is cut"],"stderr":[]},
                {"name":"x","transport":"http","state":"backing_off","since_seconds":2,"restarts":4,"cause":"refused\u001b[2J\u202e","retry_in_seconds":4}],
                "configuration":{"disabled":["off"],"left_out":[{"name":"opt","why":"${A} has no value","advice":"export A"}]}}"#,
        )
        .unwrap();
        assert_eq!(
            listing(&whole, Room { columns: usize::MAX, has_colour: false }),
            "NAME   STATE        SINCE      TOOLS  REVISION    RESTARTS  WHAT\n\
             files  ready        1 min 1 s  3      2025-11-25  0         1 failed instance start; its list is cut\n\
             x      backing_off  2 s        -      -           4         refused\\u{1b}[2J\\u{202e}; next try in 4 s\n\
             off    disabled     -          -      -           -         `enabled = false` in the configuration\n\
             opt    left_out     -          -      -           -         ${A} has no value; export A\n"
        );
        let narrow = listing(&whole, Room { columns: 40, has_colour: false });
        assert!(narrow.lines().any(|line| line.starts_with("off ") && line.ends_with('…')), "{narrow}");
        assert!(narrow.ends_with("\n`trunkline status NAME` shows what is cut here.\n"), "{narrow}");
    }
}
