//! A client of one's own: it starts `trunkline stdio` for the configuration, asks it over its pipes, and ends it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use serde_json::{Value, json};

use crate::cli::args::{Look, Shared};
use crate::cli::look::{page, parse};
use crate::cli::process::Failure;
use crate::config::fault::printable;
use crate::gateway::own_program;
use crate::telemetry::logging::say;

/// So many pages of a list are read.
const PAGES_MAX: usize = 1000;

/// How long a list waits for upstreams that were never seen.
const LIST_WAIT: &str = "TRUNKLINE_CATALOG__FIRST_LIST_WAIT";

/// So long, and so often, upstreams are looked at that still start when a list is there.
const STARTS_MAX: Duration = Duration::from_secs(5);
const STARTS_LOOK: Duration = Duration::from_millis(20);

/// A gateway of its own, and the way to ask it.
pub(super) struct Session {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    next: u64,
}

impl Session {
    /// Starts it. What it logs goes to stderr, warnings and errors alone.
    pub(super) fn open(shared: &Shared) -> Result<Self, Failure> {
        let mut command = Command::new(own_program());
        command.arg("stdio").args(["--log-level", shared.log_level.as_deref().unwrap_or("warn")]);
        // The list is to be whole, however long `npx` downloads.
        if std::env::var_os(LIST_WAIT).is_none() {
            command.env(LIST_WAIT, "120s");
        }
        for file in &shared.config {
            command.arg("--config").arg(file);
        }
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("cannot start the gateway")?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(anyhow!("the gateway has no pipes").into());
        };
        let mut session = Self { child, to: Some(to), from: BufReader::new(from), next: 0 };
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "trunkline-cli", "version": env!("CARGO_PKG_VERSION") },
        });
        if session.ask("initialize", params).is_err() {
            // It has said on stderr what is wrong.
            return Err(Failure::Found);
        }
        session.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(session)
    }

    /// One request and its result. Progress goes to stderr; a question is declined, since nobody is there to answer it.
    pub(super) fn ask(&mut self, method: &str, mut params: Value) -> Result<Value, anyhow::Error> {
        self.next += 1;
        let id = self.next;
        params["_meta"] = json!({ "progressToken": id });
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        loop {
            let mut line = String::new();
            if self.from.read_line(&mut line).context("cannot read from the gateway")? == 0 {
                bail!("the gateway ended before it answered");
            }
            let mut frame: Value = serde_json::from_str(&line).context("the gateway sent no JSON")?;
            match (frame["method"].as_str(), frame.get("id").cloned()) {
                (None, Some(answered)) if answered == id => {
                    if let Some(error) = frame.get("error") {
                        let text = error["message"].as_str().unwrap_or("it failed");
                        bail!("{}", printable(text));
                    }
                    return Ok(frame["result"].take());
                }
                (Some("notifications/progress"), _) => progress(&frame["params"]),
                (Some(asked), Some(id)) => {
                    let error = json!({ "code": -32601, "message": format!("{asked} cannot be answered here") });
                    self.send(&json!({ "jsonrpc": "2.0", "id": id, "error": error }))?;
                }
                _ => {}
            }
        }
    }

    /// All pages of a list.
    pub(super) fn list(&mut self, method: &str, key: &str) -> Result<Vec<Value>, anyhow::Error> {
        let (mut all, mut params) = (Vec::new(), json!({}));
        for _ in 0..PAGES_MAX {
            let mut page = self.ask(method, params)?;
            if let Value::Array(items) = page[key].take() {
                all.extend(items);
            }
            match page["nextCursor"].as_str() {
                Some(cursor) => params = json!({ "cursor": cursor }),
                None => break,
            }
        }
        Ok(all)
    }

    /// The upstreams, where there are some and none of them takes calls; each is named.
    #[allow(clippy::disallowed_methods, reason = "a command that does nothing else")]
    pub(super) fn all_broken(&self) -> Option<String> {
        let look = Look { pid: Some(self.child.id()), ..Look::default() };
        // A list can be there before its upstream has told what else it offers.
        let until = Instant::now() + STARTS_MAX;
        loop {
            let rows = parse(&page(&look).ok()?).ok()?.upstreams;
            if rows.is_empty() || rows.iter().any(|one| one.is_up() || one.state == "idle") {
                return None;
            }
            if rows.iter().all(|one| one.state != "starting") || Instant::now() >= until {
                return Some(rows.iter().map(|one| printable(&one.name)).collect::<Vec<_>>().join(", "));
            }
            sleep(STARTS_LOOK);
        }
    }

    fn send(&mut self, frame: &Value) -> Result<(), anyhow::Error> {
        let Some(to) = &mut self.to else { bail!("the gateway has ended") };
        to.write_all(format!("{frame}\n").as_bytes()).context("cannot write to the gateway")
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // At the end of its stdin it ends its children and itself.
        self.to = None;
        let _ = self.child.wait();
    }
}

fn progress(params: &Value) {
    let done = params["progress"].as_f64().unwrap_or_default();
    let of = params["total"].as_f64().map(|total| format!(" of {total}")).unwrap_or_default();
    let what = params["message"].as_str().map(|text| format!(": {}", printable(text))).unwrap_or_default();
    say(&format!("{done}{of}{what}"));
}
