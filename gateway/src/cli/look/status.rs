//! `trunkline status NAME`: all that a running gateway knows of one upstream.

use std::io::Write;

use anyhow::Context;

use crate::config::fault::printable;

use super::ls;
use super::page as look;
use super::row::{Login, Row};
use crate::cli::args::Status;
use crate::cli::process::table::{Room, wrapped};
use crate::cli::process::{Failure, answer};
use crate::upstream::config;

/// Prints what is known of the upstream; of all, a line each, where none is named.
pub(crate) fn run(status: &Status) -> Result<(), Failure> {
    let Some(name) = &status.name else { return ls::run(&status.look) };
    let page = look::page(&status.look)?;
    let whole = look::parse(&page)?;
    let Some(row) = whole.upstreams.iter().find(|row| row.name == *name) else {
        return Err(anyhow::anyhow!("{}", whole.unknown(name)).into());
    };
    let mut out = answer();
    if status.look.json {
        let page: serde_json::Value = serde_json::from_str(&page).context("the page is not JSON")?;
        let rows = page["upstreams"].as_array().into_iter().flatten();
        let raw = rows.into_iter().find(|row| row["name"] == **name).unwrap_or(&serde_json::Value::Null);
        let raw = serde_json::to_string_pretty(raw).context("JSON can be written")?;
        out.json(&raw)?;
    } else {
        write!(out, "{}{}", sheet(row, Room::of_stdout().columns), whole.configuration())?;
    }
    Ok(())
}

/// What there is to say of one instance of an upstream, in a line.
fn told(upstream: &str, instance: &Row) -> String {
    let mut line = format!(
        "{}: {} for {}",
        printable(&instance.name),
        printable(&instance.state),
        look::time(instance.since_seconds)
    );
    if let (Some(revision), Some(era)) = (&instance.revision, &instance.era) {
        line.push_str(&format!(", {}", printable(&format!("{revision} ({era})"))));
    }
    if let Some(pid) = instance.pid {
        line.push_str(&format!(", pid {pid}"));
    }
    if instance.restarts > 0 {
        line.push_str(&format!(", {}", look::counted(instance.restarts as usize, "restart")));
    }
    if let Some(cause) = &instance.cause {
        line.push_str(&format!(": {}", printable(cause.trim())));
    } else if let Some(error) = &instance.last_error {
        line.push_str(&format!(
            ", last error {} ago: {}",
            look::time(error.ago_seconds),
            printable(error.cause.trim())
        ));
    }
    // The one that all share is shown with the upstream.
    if let Some(login) = instance.login.as_ref().filter(|login| login.principal.is_some()) {
        line.push_str(&format!(", logged in {}", logged_in(upstream, login)));
    }
    line
}

/// Where the values of the sheet stand.
const VALUE: usize = 12;

fn sheet(row: &Row, columns: usize) -> String {
    let mut out = String::new();
    let mut say = |what: &str, how: String| {
        out.push_str(&(wrapped(&format!("{what:VALUE$}{how}"), VALUE, columns) + "\n"));
    };
    say("name", printable(&row.name));
    say("transport", printable(&row.transport));
    say("state", format!("{} for {}", printable(&row.state), look::time(row.since_seconds)));
    if let Some(cause) = &row.cause {
        say("cause", printable(cause.trim()).to_string());
    }
    for (what, seconds) in [("uptime", row.uptime_seconds), ("down for", row.downtime_seconds)] {
        if let Some(seconds) = seconds {
            say(what, look::time(seconds));
        }
    }
    if let Some(seconds) = row.retry_in_seconds {
        say("next try", format!("in {}", look::time(seconds)));
    }
    if let (Some(revision), Some(era)) = (&row.revision, &row.era) {
        say("revision", printable(&format!("{revision} ({era})")));
    }
    if let Some(kinds) = &row.may_ask {
        let nothing = "nothing; tools that ask for something may be missing or fail".to_owned();
        say("may ask", if kinds.is_empty() { nothing } else { printable(&kinds.join(", ")) });
    }
    if let Some(pid) = row.pid {
        say("pid", pid.to_string());
    }
    let reason = row.restarted_for.as_deref().map(why).unwrap_or_default();
    say("restarts", format!("{}{reason}", row.restarts));
    if let Some(error) = &row.last_error {
        let (ago, cause) = (look::time(error.ago_seconds), printable(error.cause.trim()));
        say("last error", format!("{ago} ago: {cause}"));
    }
    if let Some(seconds) = row.started_in_seconds {
        say("start", format!("took {seconds:.2} s"));
    }
    if let Some(items) = &row.items {
        let counts = [
            (items.tools, "tool"),
            (items.resources, "resource"),
            (items.templates, "template"),
            (items.prompts, "prompt"),
        ];
        say("offers", counts.map(|(count, noun)| look::counted(count, noun)).join(", "));
    }
    if let Some(login) = &row.login {
        say("login", logged_in(&row.name, login));
    }
    for remark in &row.remarks {
        say("remark", printable(remark).to_string());
    }
    if let Some(calls) = &row.calls {
        say("calls", format!("{} in flight, {} queued", calls.in_flight, calls.queued));
    }
    if row.client_sessions > 0 {
        say("sessions", format!("{} of clients", row.client_sessions));
    }
    if row.failed_starts > 0 {
        say("failed", look::counted(row.failed_starts as usize, "instance start"));
    }
    for instance in &row.instances {
        say("instance", told(&row.name, instance));
    }
    for line in &row.stderr {
        say("stderr", printable(line).to_string());
    }
    out
}

/// Where a person has logged in, and how long that lasts.
fn logged_in(name: &str, login: &Login) -> String {
    let run = format!("run `{}`", printable(&config::Login::command_of(name, login.principal.as_deref())));
    let until = match (login.expires_in_seconds.map(look::time), login.refreshed) {
        (Some(left), true) => format!("its token ends in {left} and is refreshed without you"),
        (None, true) => "its token is refreshed without you".to_owned(),
        (Some(left), false) => format!("it ends in {left}; {run} then"),
        (None, false) => "it lasts until the upstream refuses it".to_owned(),
    };
    let more = match login.wanted.is_empty() {
        true => String::new(),
        false => format!("; needs more (`{}`): {run}", printable(&login.wanted.join(" "))),
    };
    format!("at {}; {until}{more}", printable(&login.issuer))
}

/// What it was last started again for, in words.
fn why(reason: &str) -> String {
    let words = match reason {
        "lost" => "connection lost",
        "start_failed" => "failed start",
        other => other,
    };
    format!(" (last: {})", printable(words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::look::page::Whole;

    #[test]
    fn all_that_is_known_stands_on_the_sheet() {
        let row: Row = serde_json::from_str(
            r#"{"name":"files","transport":"stdio","state":"failed","since_seconds":5,"downtime_seconds":65,"restarts":2,"restarted_for":"crash","cause":"it exited",
                "retry_in_seconds":60,"pid":7,"may_ask":["elicitation","roots"],"remarks":["its list is cut"],"login":{"issuer":"https://as","expires_in_seconds":90,"refreshed":true},"revision":"2026-07-28","era":"stateless","last_error":{"cause":"it exited","ago_seconds":5},"started_in_seconds":0.123,"stderr":["one","two"],
                "items":{"tools":1,"resources":2,"templates":0,"prompts":0},
                "calls":{"in_flight":3,"queued":1},"failed_starts":2,"instances":[{"name":"laptop","transport":"stdio","state":"backing_off","since_seconds":1,"restarts":1,"cause":"gone"},
                    {"name":"token:ada","transport":"http","state":"ready","since_seconds":1,"restarts":0,"login":{"principal":"token:o'h","issuer":"https://as","expires_in_seconds":9,"wanted":["more"]}}]}"#,
        )
        .unwrap();
        assert_eq!(
            sheet(&row, usize::MAX),
            "name        files\ntransport   stdio\nstate       failed for 5 s\ncause       it exited\ndown for    1 min 5 s\n\
             next try    in 1 min 0 s\nrevision    2026-07-28 (stateless)\nmay ask     elicitation, roots\npid         7\n\
             restarts    2 (last: crash)\nlast error  5 s ago: it exited\nstart       took 0.12 s\n\
             offers      1 tool, 2 resources, 0 templates, 0 prompts\n\
             login       at https://as; its token ends in 1 min 30 s and is refreshed without you\nremark      its list is cut\n\
             calls       3 in flight, 1 queued\nfailed      2 instance starts\ninstance    laptop: backing_off for 1 s, 1 restart: gone\n\
             instance    token:ada: ready for 1 s, logged in at https://as; it ends in 9 s; run `trunkline login files --as 'token:o'\\''h'` then; \
             needs more (`more`): run `trunkline login files --as 'token:o'\\''h'`\nstderr      one\nstderr      two\n"
        );
        let off = serde_json::from_str(
            r#"{"disabled":["off"],"left_out":[{"name":"opt","why":"${A} has no value","advice":"export A"}]}"#,
        )
        .unwrap();
        let whole = Whole { ready: true, upstreams: vec![row], limits: None, configuration: Some(off) };
        assert_eq!(whole.unknown("x"), "no upstream `x`. Known: files (disabled: off; left out: opt)");
        assert_eq!(
            ["off__x", "off", "office__x", "opt__x"].map(|tool| whole.absent_owner(tool)),
            [Some("off"), None, None, Some("opt")]
        );
        let disabled = "`off` is disabled in the configuration: set `enabled = true` in [upstreams.off]";
        assert_eq!(whole.unknown("off"), disabled);
        assert_eq!(whole.unknown("opt"), "upstream `opt` is left out: ${A} has no value; export A");
    }
}
