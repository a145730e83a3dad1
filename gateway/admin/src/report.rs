//! The health board in words: for a person, and as JSON.

use super::configuration::Configuration;
use crate::health::Cause;
use crate::health::row;
use crate::health::row::{Health, State};
use crate::memory::Refusals;
use crate::memory::account::Kind;
use crate::memory::budget::Budget;
use crate::protocol::revision::Revision;
use crate::secrets::{visible, visible_json};
use crate::telemetry::reloads::Reload;
use serde::Serialize;
use serde_json::{Value, json as value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;
use tokio::time::Instant;

/// One upstream as a program reads it.
#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    transport: &'a str,
    state: &'a str,
    since_seconds: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    uptime_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    downtime_seconds: Option<u64>,
    restarts: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    restarted_for: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_starts: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<Error<'a>>,
    #[serde(flatten)]
    cause: Option<Why<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_in_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    era: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    may_ask: Option<&'a [&'static str]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_in_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<Items>,
    #[serde(skip_serializing_if = "Option::is_none")]
    login: Option<Login<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remarks: Vec<&'a str>,
    calls: Calls,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_sessions: Option<usize>,
    stderr: &'a [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    instances: Vec<Row<'a>>,
}

/// What was last wrong with an upstream, though it may be over.
#[derive(Serialize)]
struct Error<'a> {
    #[serde(flatten)]
    cause: Why<'a>,
    ago_seconds: u64,
}

/// A cause in words, and the same as data.
#[derive(Serialize)]
struct Why<'a> {
    cause: Cow<'a, str>,
    code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code_number: Option<i64>,
    #[serde(skip_serializing_if = "str::is_empty")]
    advice: &'a str,
}

impl<'a> From<&'a Cause> for Why<'a> {
    fn from(cause: &'a Cause) -> Self {
        Self { cause: cause.full(), code: cause.code().as_str(), code_number: cause.number(), advice: cause.advice() }
    }
}

/// The login of a person that an upstream is called with.
#[derive(Serialize)]
struct Login<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<&'a str>,
    issuer: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_in_seconds: Option<u64>,
    refreshed: bool,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    wanted: &'a [String],
}

impl<'a> From<&'a row::Login> for Login<'a> {
    fn from(login: &'a row::Login) -> Self {
        let left = |ends: Instant| ends.saturating_duration_since(Instant::now()).as_secs();
        let (expires_in_seconds, refreshed) = (login.ends.map(left), login.is_refreshed);
        let (principal, issuer) = (login.principal.as_deref(), &*login.issuer);
        Self { principal, issuer, expires_in_seconds, refreshed, wanted: &login.wanted }
    }
}

#[derive(Serialize)]
struct Calls {
    in_flight: usize,
    queued: usize,
}

#[derive(Serialize)]
struct Items {
    tools: usize,
    resources: usize,
    templates: usize,
    prompts: usize,
}

#[derive(Serialize)]
struct Whole<'a> {
    ready: bool,
    upstreams: Vec<Row<'a>>,
    limits: Limits,
    configuration: Configuration<'a>,
}

/// How much is used of what all share.
#[derive(Serialize)]
struct Limits {
    memory: Memory,
    /// How often clients were refused for want of room, by what was full.
    refused: BTreeMap<&'static str, u64>,
}

#[derive(Serialize)]
struct Memory {
    used_bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit_bytes: Option<usize>,
    /// How many large messages were dropped because that was reached.
    dropped: u64,
}

/// The board as JSON.
pub(crate) fn json(
    is_ready: bool,
    board: &[Health],
    (budget, refusals): (&Budget, &Refusals),
    reload: &Reload,
) -> String {
    let memory = Memory { used_bytes: budget.used(), limit_bytes: budget.limit(), dropped: dropped(budget) };
    let limits = Limits { memory, refused: refusals.all() };
    let whole =
        Whole { ready: is_ready, upstreams: board.iter().map(one_of).collect(), limits, configuration: reload.into() };
    pretty(&whole)
}

/// How much memory peers make the gateway keep, and how often clients were refused for want of room.
pub(crate) fn limits(budget: &Budget, refusals: &Refusals) -> String {
    let mib = |bytes: usize| bytes as f64 / f64::from(1 << 20);
    let (used, lost) = (mib(budget.used()), dropped(budget));
    let limit = budget.limit().map(|limit| format!(" of {:.0} MiB", mib(limit))).unwrap_or_default();
    let refused: Vec<String> = refusals.all().iter().map(|(full, count)| format!("{full} {count}")).collect();
    let refused = match refused.is_empty() {
        true => String::new(),
        false => format!("refused (full)  {}\n", refused.join("  ")),
    };
    format!("memory  {used:.1}{limit} in use  {lost} messages dropped\n{refused}")
}

fn dropped(budget: &Budget) -> u64 {
    Kind::ALL.into_iter().map(|kind| budget.lost_by(kind)).sum()
}

/// The gateway and its limits as a value: `own` is said of the gateway itself.
pub(crate) fn status(
    is_ready: bool,
    own: &str,
    board: &[Health],
    (budget, refusals): (&Budget, &Refusals),
    reload: &Reload,
) -> Value {
    let memory = Memory { used_bytes: budget.used(), limit_bytes: budget.limit(), dropped: dropped(budget) };
    let limits = Limits { memory, refused: refusals.all() };
    let up = board.iter().filter(|health| health.state.is_up()).count();
    value!({
        "gateway": serde_json::from_str::<Value>(own).unwrap_or_default(),
        "ready": is_ready,
        "upstreams": { "all": board.len(), "up": up },
        "limits": limits,
        "configuration": Configuration::from(reload),
    })
}

/// The upstreams of the board as a value.
pub(crate) fn upstreams(board: &[Health]) -> Value {
    value!({ "upstreams": board.iter().map(one_of).collect::<Vec<_>>() })
}

/// One upstream of the board as JSON.
pub(crate) fn one(board: &[Health], name: &str) -> Option<String> {
    let health = board.iter().find(|health| &*health.name == name)?;
    Some(pretty(&one_of(health)))
}

/// JSON that may be shown on a terminal.
fn pretty(page: &impl Serialize) -> String {
    let page = serde_json::to_string_pretty(page).expect("strings and numbers always have a JSON form");
    match visible_json(&page) {
        Cow::Borrowed(_) => page,
        Cow::Owned(shown) => shown,
    }
}

fn one_of(health: &Health) -> Row<'_> {
    Row {
        name: &health.name,
        transport: health.transport,
        state: health.state.as_str(),
        since_seconds: health.since.elapsed().as_secs(),
        uptime_seconds: health.uptime().map(|time| time.as_secs()),
        downtime_seconds: health.downtime().map(|time| time.as_secs()),
        restarts: health.restarts,
        restarted_for: health.restarted_for,
        failed_starts: (health.failed_starts > 0).then_some(health.failed_starts),
        last_error: health
            .last_error
            .as_ref()
            .map(|error| Error { cause: (&error.cause).into(), ago_seconds: error.at.elapsed().as_secs() }),
        cause: health.cause.as_ref().map(Why::from),
        retry_in_seconds: retry_in(health),
        pid: health.pid,
        revision: health.revision,
        era: health.revision.and_then(era),
        may_ask: health.may_ask.as_deref(),
        started_in_seconds: health.started_in.map(|time| time.as_secs_f64()),
        items: health.items.map(|[tools, resources, templates, prompts]| Items {
            tools,
            resources,
            templates,
            prompts,
        }),
        login: health.login.as_ref().map(Login::from),
        remarks: health.remarks.values().map(String::as_str).collect(),
        calls: calls(health),
        client_sessions: (health.sessions > 0).then_some(health.sessions),
        stderr: &health.stderr,
        instances: health.instances.values().map(one_of).collect(),
    }
}

/// The seconds up to the next attempt, those that have begun with them.
fn retry_in(health: &Health) -> Option<u64> {
    let left = health.retry_at?.saturating_duration_since(Instant::now());
    Some(left.as_secs_f64().ceil() as u64)
}

/// What a revision's way to speak is called.
fn era(revision: &str) -> Option<&'static str> {
    Revision::parse(revision).map(|revision| if revision.is_modern() { "stateless" } else { "handshake" })
}

/// The calls of an upstream, whichever instance has them.
fn calls(health: &Health) -> Calls {
    let all = || std::iter::once(health).chain(health.instances.values());
    let (in_flight, queued) = (|one: &Health| one.traffic.in_flight(), |one: &Health| one.traffic.queued());
    Calls { in_flight: all().map(in_flight).sum(), queued: all().map(queued).sum() }
}

/// The board as text: a line for each upstream, with why it is not ready.
pub(crate) fn text(is_ready: bool, board: &[Health]) -> String {
    let mut out = String::from(if is_ready { "ready\n" } else { "draining\n" });
    let width = board.iter().map(|health| health.name.chars().count()).max().unwrap_or_default();
    for health in board {
        line(health, width, &mut out).expect("writing to a string does not fail");
        for (number, instance) in &health.instances {
            out.push_str("  ");
            let named = Health { name: format!("{number} {}", visible(&instance.name)).into(), ..instance.clone() };
            line(&named, 0, &mut out).expect("writing to a string does not fail");
        }
    }
    out
}

fn line(health: &Health, width: usize, out: &mut String) -> std::fmt::Result {
    let (name, state, since) = (&health.name, health.state.as_str(), health.since.elapsed().as_secs());
    write!(out, "{name:width$}  {:5}  {state:11}  {since:>6} s", health.transport)?;
    if let Some([tools, ..]) = health.items {
        write!(out, "  {tools} tool{}", if tools == 1 { "" } else { "s" })?;
    }
    if let Some(revision) = health.revision {
        write!(out, "  {revision}")?;
    }
    if let Some(pid) = health.pid {
        write!(out, "  pid {pid}")?;
    }
    for (word, time) in [("up", health.uptime()), ("down", health.downtime())] {
        // Where it differs from how long it stands so.
        if let Some(seconds) = time.map(|time| time.as_secs()).filter(|seconds| *seconds > since) {
            write!(out, "  {word} for {seconds} s")?;
        }
    }
    for (count, what) in [(health.instances.len(), "instance"), (health.sessions, "client session")] {
        if count > 0 {
            write!(out, "  {count} {what}{}", if count == 1 { "" } else { "s" })?;
        }
    }
    if health.failed_starts > 0 {
        let noun = if health.failed_starts == 1 { "instance start" } else { "instance starts" };
        write!(out, "  {} failed {noun}", health.failed_starts)?;
    }
    let calls = calls(health);
    for (count, what) in [(calls.in_flight, "in flight"), (calls.queued, "queued")] {
        if count > 0 {
            write!(out, "  {count} {what}")?;
        }
    }
    past(health, out)
}

/// What happened to it, and what comes next.
fn past(health: &Health, out: &mut String) -> std::fmt::Result {
    if health.restarts > 0 {
        let noun = if health.restarts == 1 { "restart" } else { "restarts" };
        let reason = health.restarted_for.map(|reason| format!(" (the last for {reason})")).unwrap_or_default();
        write!(out, "  {} {noun}{reason}", health.restarts)?;
    }
    if let Some(cause) = &health.cause {
        write!(out, "  {}", visible(&cause.full()))?;
    }
    if let Some(error) = health.last_error.as_ref().filter(|error| health.cause.as_ref() != Some(&error.cause)) {
        write!(out, "  last error {} s ago: {}", error.at.elapsed().as_secs(), visible(&error.cause.full()))?;
    }
    if let Some(seconds) = retry_in(health) {
        write!(out, "  next try in {seconds} s")?;
    }
    for remark in health.remarks.values() {
        write!(out, "  {}", visible(remark))?;
    }
    // The last words of what is not ready, where the cause has not them already.
    let last = health.stderr.last().filter(|_| health.state != State::Ready);
    if let Some(last) = last.filter(|last| !health.cause.as_ref().is_some_and(|cause| cause.full().contains(*last))) {
        write!(out, "  (stderr: {})", visible(last))?;
    }
    out.push('\n');
    Ok(())
}

#[cfg(test)]
mod tests;
