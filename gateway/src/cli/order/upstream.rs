//! `trunkline start NAME…`, `stop`, `restart`, `enable` and `disable`: what a person orders upstreams of a running gateway to do.

use std::io::Write;
use std::time::Duration;

use anyhow::{Context, anyhow};

use crate::cli::process::failure::note;
use crate::config::fault::printable;
use crate::health::Order;

use crate::cli::args::Look;
use crate::cli::args::setup::Orders;
use crate::cli::look;
use crate::cli::look::{Row, Whole};
use crate::cli::process::failure::tell as tell_error;
use crate::cli::process::{Failure, answer};

/// How long a start is watched, and how often it is looked at.
const WATCHED: Duration = Duration::from_secs(90);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// So many upstreams are ordered at once.
const TOGETHER_MAX: usize = 16;

/// Gives the order to each upstream that is meant, and watches what comes of it. Each outcome is told, whatever becomes of the others, and as
/// JSON in an array, however many there are.
pub(crate) fn run(order: Order, orders: &Orders) -> Result<(), Failure> {
    let names = meant(order, orders)?;
    let (mut rows, mut is_well) = (Vec::new(), true);
    for some in names.chunks(TOGETHER_MAX) {
        let done = |name: &String| (name.clone(), ordered(order, orders, name));
        let all: Vec<_> = std::thread::scope(|scope| {
            let all: Vec<_> = some.iter().map(|name| scope.spawn(move || done(name))).collect();
            // What panics there panics here.
            all.into_iter().map(|one| one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        });
        for (name, outcome) in all {
            is_well &= outcome.as_ref().is_ok_and(|done| done.is_as_ordered);
            tell(orders, &name, outcome, &mut rows)?;
        }
    }
    if orders.look.json {
        answer().json(&format!("{:#}", serde_json::Value::Array(rows)))?;
    }
    if is_well { Ok(()) } else { Err(Failure::Found) }
}

/// The names of those that are meant.
fn meant(order: Order, orders: &Orders) -> Result<Vec<String>, Failure> {
    let rows = || -> Result<Vec<Row>, Failure> { Ok(Whole::of(&orders.look)?.upstreams) };
    if !orders.all {
        if order == Order::Restart {
            // Where that cannot be known the order itself says why.
            announced(&orders.names, &rows().unwrap_or_default());
        }
        let mut names = orders.names.clone();
        let mut seen = std::collections::HashSet::new();
        names.retain(|name| seen.insert(name.clone()));
        return Ok(names);
    }
    let rows = rows()?;
    let names: Vec<_> = rows.iter().map(|row| row.name.clone()).collect();
    if names.is_empty() {
        return Err(anyhow!("the gateway has no upstreams").into());
    }
    if order == Order::Restart {
        announced(&names, &rows);
    }
    Ok(names)
}

/// What became of an order.
struct Done {
    page: String,
    row: Row,
    is_as_ordered: bool,
}

/// Orders one upstream.
fn ordered(order: Order, orders: &Orders, name: &str) -> Result<Done, Failure> {
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Err(anyhow!("invalid upstream name `{}`", printable(name)).into());
    }
    let (status, said) = look::post(&orders.look, &format!("/upstreams/{name}/{}", order.as_str()))?;
    let mut page = match status {
        200 | 202 => said,
        404 => {
            // It names those alone that are not disabled, and not the one that is meant.
            let unknown = Whole::of(&orders.look).ok().map(|whole| whole.unknown(name));
            return Err(anyhow!("{}", unknown.unwrap_or_else(|| printable(said.trim()))).into());
        }
        _ => return Err(anyhow!("cannot {} `{name}`: {}", order.as_str(), printable(said.trim())).into()),
    };
    if order != Order::Stop {
        page = watched(&orders.look, name, page)?;
    }
    let row: Row = serde_json::from_str(&page).context("not a Trunkline gateway, or one of another version")?;
    // One that rests has come up, and nobody has called it since.
    let is_as_ordered = if order == Order::Stop { row.state == "stopped" } else { row.is_up() || row.state == "idle" };
    Ok(Done { page, row, is_as_ordered })
}

/// Tells an outcome: on stdout where the upstream stands, on stderr what is wrong.
fn tell(
    orders: &Orders,
    name: &str,
    outcome: Result<Done, Failure>,
    rows: &mut Vec<serde_json::Value>,
) -> Result<(), Failure> {
    let done = match outcome {
        Ok(done) => done,
        Err(Failure::Failed(error)) => {
            let why = format!("{error:#}");
            // What is true of all of them is said once.
            if !rows.iter().any(|row| row["error"] == why.as_str()) {
                tell_error(&why, 1);
            }
            rows.push(serde_json::json!({ "name": name, "error": why }));
            return Ok(());
        }
        Err(failure) => return Err(failure),
    };
    match orders.look.json {
        true => rows.push(serde_json::from_str(&done.page).context("the answer is not JSON")?),
        false => {
            let mut out = answer();
            writeln!(out, "{}", line(&done.row))?;
            out.flush()?;
        }
    }
    if !done.is_as_ordered {
        tell_error(&format!("`{name}` is {}", state(&done.row)), 1);
    }
    Ok(())
}

/// Says on stderr what a restart waits for.
fn announced(names: &[String], rows: &[Row]) {
    for row in rows.iter().filter(|row| row.is_up() && names.contains(&row.name)) {
        if let Some(calls) = row.calls.as_ref().filter(|calls| calls.in_flight > 0) {
            note(&waits(&row.name, calls.in_flight));
        }
    }
}

/// What a restart waits for.
fn waits(name: &str, running: usize) -> String {
    format!("{name} has {} in flight: waiting for up to 5 s (--now cuts them)", look::counted(running, "call"))
}

/// Looks until the start has come to an end, well or not.
fn watched(at: &Look, name: &str, mut page: String) -> Result<String, Failure> {
    for _ in 0..WATCHED.as_millis() / LOOK_EVERY.as_millis() {
        let row: serde_json::Value = serde_json::from_str(&page).unwrap_or_default();
        if row["state"] != "starting" {
            break;
        }
        #[allow(clippy::disallowed_methods, reason = "a command that does nothing else")]
        std::thread::sleep(LOOK_EVERY);
        let whole: serde_json::Value = serde_json::from_str(&look::page(at)?).unwrap_or_default();
        let rows = whole["upstreams"].as_array().into_iter().flatten();
        let Some(row) = rows.into_iter().find(|row| row["name"] == name) else { break };
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
