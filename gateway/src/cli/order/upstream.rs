//! `trunkline start NAME`, `stop NAME` and `restart NAME`: what a person orders an upstream of a running gateway to do.

use std::io::Write;
use std::time::Duration;

use anyhow::{Context, anyhow};

use crate::config::fault::printable;
use crate::health::Order;
use crate::telemetry::logging::say;

use crate::cli::args::Status;
use crate::cli::look;
use crate::cli::look::Row;
use crate::cli::process::{Failure, answer};

/// How long a start is watched, and how often it is looked at.
const WATCHED: Duration = Duration::from_secs(90);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Gives the order, and watches what comes of it.
pub(crate) fn run(order: Order, upstream: &Status) -> Result<(), Failure> {
    let name = &upstream.name;
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Err(anyhow!("invalid upstream name `{}`", printable(name)).into());
    }
    if order == Order::Restart {
        announced(upstream);
    }
    let (status, said) = look::post(&upstream.look, &format!("/upstreams/{name}/{}", order.as_str()))?;
    let mut page = match status {
        200 | 202 => said,
        404 => return Err(anyhow!("{}", printable(said.trim())).into()),
        _ => return Err(anyhow!("cannot {} `{name}`: {}", order.as_str(), printable(said.trim())).into()),
    };
    if order != Order::Stop {
        page = watched(upstream, page)?;
    }
    let row: Row = serde_json::from_str(&page).context("not a Trunkline gateway, or one of another version")?;
    let mut out = answer();
    match upstream.look.json {
        true => out.json(&page)?,
        false => writeln!(out, "{}", line(&row))?,
    }
    match if order == Order::Stop { row.state == "stopped" } else { row.is_up() } {
        true => Ok(()),
        false => Err(anyhow!("`{name}` is {}", state(&row)).into()),
    }
}

/// Says on stderr what the restart waits for. Where that cannot be known the order itself says why.
fn announced(upstream: &Status) {
    let whole = look::page(&upstream.look).and_then(|page| look::parse(&page));
    let rows = whole.map(|whole| whole.upstreams).unwrap_or_default();
    let row = rows.into_iter().find(|row| row.name == upstream.name && row.is_up());
    if let Some(calls) = row.and_then(|row| row.calls).filter(|calls| calls.in_flight > 0) {
        say(&waits(&upstream.name, calls.in_flight));
    }
}

/// What a restart waits for.
fn waits(name: &str, running: usize) -> String {
    format!("{name} has {} in flight: waiting for up to 5 s (--now cuts them)", look::counted(running, "call"))
}

/// Looks until the start has come to an end, well or not.
fn watched(upstream: &Status, mut page: String) -> Result<String, Failure> {
    for _ in 0..WATCHED.as_millis() / LOOK_EVERY.as_millis() {
        let row: serde_json::Value = serde_json::from_str(&page).unwrap_or_default();
        if row["state"] != "starting" {
            break;
        }
        #[allow(clippy::disallowed_methods, reason = "a command that does nothing else")]
        std::thread::sleep(LOOK_EVERY);
        let whole: serde_json::Value = serde_json::from_str(&look::page(&upstream.look)?).unwrap_or_default();
        let rows = whole["upstreams"].as_array().into_iter().flatten();
        let Some(row) = rows.into_iter().find(|row| row["name"] == *upstream.name) else { break };
        page = serde_json::to_string_pretty(row).context("JSON can be written")?;
    }
    Ok(page)
}

/// Where it stands, and why.
fn state(row: &Row) -> String {
    let next = row.retry_in_seconds.map(|seconds| format!("; next try in {}", look::time(seconds))).unwrap_or_default();
    match &row.cause {
        Some(cause) if row.state != "ready" => printable(&format!("{}: {}{next}", row.state, cause.trim())),
        _ => printable(&row.state),
    }
}

fn line(row: &Row) -> String {
    let tools = row.items.as_ref().filter(|_| row.is_up());
    let tools = tools.map(|items| format!(" ({})", look::counted(items.tools, "tool"))).unwrap_or_default();
    // What is up and not well is as ordered, and said to be so.
    let state = if row.is_up() { state(row) } else { printable(&row.state) };
    format!("{} is {state}{tools}", printable(&row.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_of_it_is_said_in_a_line() {
        let row = |text: &str| -> Row { serde_json::from_str(text).unwrap() };
        let ready =
            row(r#"{"name":"a","transport":"stdio","state":"ready","since_seconds":0,"restarts":0,"cause":"it was",
            "items":{"tools":3,"resources":0,"templates":0,"prompts":0}}"#);
        assert_eq!((line(&ready).as_str(), state(&ready).as_str()), ("a is ready (3 tools)", "ready"));
        let degraded = Row { state: "degraded".into(), cause: Some("it is silent".into()), ..ready };
        assert_eq!(line(&degraded), "a is degraded: it is silent (3 tools)");
        let failed = row(
            r#"{"name":"a","transport":"stdio","state":"failed","since_seconds":0,"restarts":0,"cause":"gone\u001b[2J","retry_in_seconds":7,
            "items":{"tools":3,"resources":0,"templates":0,"prompts":0}}"#,
        );
        assert_eq!(
            (line(&failed).as_str(), state(&failed).as_str()),
            ("a is failed", "failed: gone\\u{1b}[2J; next try in 7 s")
        );
    }
}
