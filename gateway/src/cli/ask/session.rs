//! A client for one command: of the gateway that runs for the configuration, by its control socket; else of a `trunkline stdio` that it
//! starts, asks over its pipes, and ends.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::awaited::{Awaited, Turn, Wanted};
use super::person::Terminal;
use super::readable;
use crate::admin::control::{self, join};
use crate::cli::args::{Look, Shared, settings};
use crate::cli::look::{self, Row, Whole};
use crate::cli::process::Failure;
use crate::cli::process::failure::{note, speaks_json};
use crate::config::fault::printable;
use crate::gateway::own_program;
use crate::telemetry::config::Control;

/// A gateway that runs has so long to let the client in; the head of its answer is not longer.
const LET_IN_WITHIN: Duration = Duration::from_secs(5);
const HEAD_BYTES_MAX: usize = 8 * 1024;

/// So many pages of a list are read.
const PAGES_MAX: usize = 1000;

/// How long a list waits for upstreams that were never seen.
const LIST_WAIT: &str = "TRUNKLINE_CATALOG__FIRST_LIST_WAIT";
/// How a gateway writes its log.
const LOG_FORMAT: &str = "TRUNKLINE_LOG__FORMAT";

/// So long, and so often, upstreams are looked at that still start when a list is there.
const STARTS_MAX: Duration = Duration::from_secs(5);
const STARTS_LOOK: Duration = Duration::from_millis(20);
/// A gateway that was started for this can be looked at so soon after it answers.
const SEEN_WITHIN: Duration = Duration::from_secs(1);

/// The parameters of a request, each as it is written.
pub(super) type Written<'a> = BTreeMap<&'a str, Box<RawValue>>;

#[derive(Serialize)]
struct Request<'a> {
    jsonrpc: &'static str,
    id: u64,
    method: &'a str,
    params: Written<'a>,
}

/// A client of a gateway: of the one that runs, else of one of its own.
pub(super) struct Session {
    way: Way,
    from: Box<dyn BufRead>,
    next: u64,
    person: Terminal,
    /// What is waited for before a list is taken.
    awaited: Option<Awaited>,
    /// Until then upstreams of a gateway of its own may start.
    starts_until: Option<Instant>,
}

/// What a gateway that is started for this is made for.
#[derive(Default)]
struct Start {
    awaited: Option<Awaited>,
    until: Option<Instant>,
}

/// The way to the gateway.
enum Way {
    /// It was started for this.
    Own(Child, Option<ChildStdin>),
    /// It runs, as this process.
    Joined(UnixStream, u32),
}

impl Session {
    /// Joins the gateway that runs for the configuration, or starts one.
    pub(super) fn open(shared: &Shared, wanted: Wanted<'_>) -> Result<Self, Failure> {
        let (way, from, Start { awaited, until }) = match joined(shared) {
            Some((stream, pid)) => {
                let way = Way::Joined(stream.get_ref().try_clone()?, pid);
                (way, Box::new(stream) as Box<dyn BufRead>, Start::default())
            }
            None => own(shared, wanted)?,
        };
        let mut session = Self { way, from, next: 0, person: Terminal::new(), awaited, starts_until: until };
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "elicitation": { "form": {}, "url": {} } },
            "clientInfo": { "name": "trunkline-cli", "version": env!("CARGO_PKG_VERSION") },
        });
        if session.ask("initialize", params).is_err() {
            // It has said on stderr what is wrong.
            return Err(Failure::Found);
        }
        session.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(session)
    }

    /// One request and its result. The person at the terminal sees its progress and answers its questions.
    pub(super) fn ask(&mut self, method: &str, params: Value) -> Result<Value, anyhow::Error> {
        let params = params.as_object().into_iter().flatten();
        let params =
            params.map(|(key, value)| Ok((&**key, to_raw_value(value)?))).collect::<Result<_, anyhow::Error>>();
        self.ask_as_written(method, params?)
    }

    /// The same, with parameters that are sent as they are written.
    pub(super) fn ask_as_written(&mut self, method: &str, mut params: Written<'_>) -> Result<Value, anyhow::Error> {
        self.next += 1;
        let id = self.next;
        params.insert("_meta", to_raw_value(&json!({ "progressToken": id }))?);
        self.send(&Request { jsonrpc: "2.0", id, method, params })?;
        loop {
            let mut line = String::new();
            if self.from.read_line(&mut line).context("cannot read from the gateway")? == 0 {
                self.person.clear();
                bail!("the gateway ended before it answered");
            }
            let mut frame = readable::value(&line).context("the gateway sent no JSON")?;
            match (frame["method"].as_str(), frame.get("id").cloned()) {
                (None, Some(answered)) if answered == id => {
                    self.person.clear();
                    if let Some(error) = frame.get("error") {
                        return Err(Refused::from(error).into());
                    }
                    return Ok(frame["result"].take());
                }
                (Some("notifications/progress"), _) => self.person.progress(&frame["params"]),
                (Some(asked), Some(id)) => {
                    let answer = match self.person.answer(asked, &frame["params"], line.as_bytes()) {
                        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
                        Err(message) => {
                            let error = json!({ "code": -32601, "message": message });
                            json!({ "jsonrpc": "2.0", "id": id, "error": error })
                        }
                    };
                    self.send(&answer)?;
                }
                _ => {}
            }
        }
    }

    /// All of a list, once what is wanted is in it, or will not be; `name` is the key of that by which an item is asked for.
    #[allow(clippy::disallowed_methods, reason = "a command that does nothing else")]
    pub(super) fn wanted(&mut self, key: &str, name: &str) -> Result<Vec<Value>, anyhow::Error> {
        let method = format!("{key}/list");
        let Some(mut awaited) = self.awaited.take() else { return self.list(&method, key) };
        loop {
            let whole = self.whole();
            let turn = awaited.turn(whole.as_ref().map(|whole| &*whole.upstreams), key, Instant::now());
            if turn != Turn::Wait {
                let items = self.list(&method, key)?;
                let is_it = |item: &Value| item[name].as_str().is_some_and(|it| awaited.is_it(it, name == "name"));
                if turn == Turn::Take || items.iter().any(is_it) {
                    return Ok(items);
                }
            }
            sleep(STARTS_LOOK);
        }
    }

    /// All pages of a list.
    fn list(&mut self, method: &str, key: &str) -> Result<Vec<Value>, anyhow::Error> {
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

    /// Whether the gateway was started for this, and ends with it.
    pub(super) fn is_of_own(&self) -> bool {
        matches!(self.way, Way::Own(..))
    }

    /// The gateway, for what it shows of itself.
    fn look(&self) -> Look {
        let pid = match &self.way {
            Way::Own(child, _) => child.id(),
            Way::Joined(_, pid) => *pid,
        };
        Look { pid: Some(pid), ..Look::default() }
    }

    /// What the gateway says of its upstreams now.
    pub(super) fn whole(&self) -> Option<Whole> {
        Whole::of(&self.look()).ok()
    }

    /// A page of the gateway.
    pub(super) fn page(&self, path: &str) -> Result<(u16, String), Failure> {
        look::get(&self.look(), path)
    }

    /// Has a gateway that runs read what was written, so that it is in force at once. Where it cannot be told, it notices by itself.
    pub(super) fn reload(&self) {
        if !self.is_of_own() {
            let _ = look::post(&self.look(), "/reload");
        }
    }

    /// Of which upstream each tool is.
    pub(super) fn owners(&self) -> Option<HashMap<String, String>> {
        let (status, page) = self.page("/api/v1/tools").ok()?;
        let page: Value = serde_json::from_str(&page).ok().filter(|_| status == 200)?;
        let text = |tool: &Value, key: &str| Some(tool[key].as_str()?.to_owned());
        Some(
            page["tools"]
                .as_array()?
                .iter()
                .filter_map(|one| Some((text(one, "name")?, text(one, "upstream")?)))
                .collect(),
        )
    }

    /// What the gateway says of its upstreams, once none of those that matter starts any more, or that takes too long.
    #[allow(clippy::disallowed_methods, reason = "a command that does nothing else")]
    pub(super) fn upstreams(&self, matters: impl Fn(&Row) -> bool) -> Option<Whole> {
        let now = Instant::now();
        let seen_until = if self.is_of_own() { now + SEEN_WITHIN } else { now };
        // A list can be there before its upstream has told what else it offers.
        let until = self.starts_until.unwrap_or(now + STARTS_MAX);
        loop {
            match self.whole() {
                Some(whole) => {
                    let waits = whole.upstreams.iter().any(|row| matters(row) && row.is_coming());
                    if !waits || Instant::now() >= until {
                        return Some(whole);
                    }
                }
                None if Instant::now() >= seen_until => return None,
                None => {}
            }
            sleep(STARTS_LOOK);
        }
    }

    fn send(&mut self, frame: &impl Serialize) -> Result<(), anyhow::Error> {
        let text = format!("{}\n", serde_json::to_string(frame)?);
        let sent = match &mut self.way {
            Way::Own(_, Some(to)) => to.write_all(text.as_bytes()),
            Way::Own(_, None) => bail!("the gateway has ended"),
            Way::Joined(stream, _) => stream.write_all(text.as_bytes()),
        };
        sent.context("cannot write to the gateway")
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Way::Own(child, to) = &mut self.way {
            // At the end of its stdin it ends its children and itself.
            *to = None;
            let _ = child.wait();
        }
    }
}

/// A request that the gateway, or an upstream, answered with an error.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub(super) struct Refused {
    text: String,
    /// Whether the gateway refused it for how its upstreams stand, not for what it asks.
    pub(super) is_of_upstreams: bool,
}

impl From<&Value> for Refused {
    fn from(error: &Value) -> Self {
        Self { text: told(error), is_of_upstreams: error["data"]["origin"] == "gateway" }
    }
}

/// What an error says; with the pages that its call needs first.
fn told(error: &Value) -> String {
    let text = printable(error["message"].as_str().unwrap_or("it failed"));
    let pages = error["data"]["elicitations"].as_array().into_iter().flatten();
    let urls: Vec<_> = pages.filter_map(|page| page["url"].as_str()).map(printable).collect();
    match urls.is_empty() {
        true => text,
        false => format!("{text}; open this page yourself, if you trust it, and call again: {}", urls.join(", ")),
    }
}

/// A gateway that is started for this. What of its upstreams matters is told with the answer; its log goes to stderr where a level is asked for.
#[allow(clippy::disallowed_methods, reason = "a command that does nothing else")]
fn own(shared: &Shared, wanted: Wanted<'_>) -> Result<(Way, Box<dyn BufRead>, Start), Failure> {
    let mut command = Command::new(own_program());
    command.arg("serve-once").args(["--log-level", shared.log_level.as_deref().unwrap_or("off")]);
    let settings = settings::read(shared, Vec::new())?;
    settings.brief().iter().for_each(|brief| note(brief));
    let config = settings.loaded.config;
    let now = Instant::now();
    let awaited = Awaited::new(&config, wanted, now);
    let until = Some(now + config.catalog.first_wait(true));
    if speaks_json() {
        // Its warnings go to the same stderr.
        command.env(LOG_FORMAT, "json");
    }
    if awaited.is_some() {
        // The wait is here, and for no other upstream.
        command.env(LIST_WAIT, "0s");
    }
    for file in &shared.config {
        command.arg("--config").arg(file);
    }
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("cannot start the gateway")?;
    let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(anyhow!("the gateway has no pipes").into());
    };
    Ok((Way::Own(child, Some(to)), Box::new(BufReader::new(from)), Start { awaited, until }))
}

/// A place at the gateway that runs for the configuration: by its files; where there are none, the only one that can be joined.
fn joined(shared: &Shared) -> Option<(BufReader<UnixStream>, u32)> {
    let (Control { folders, files }, is_named) = settings::control(shared);
    let all: Vec<_> = control::running(&folders).into_iter().filter(|one| one.mode.is_of_many()).collect();
    let is_only = all.len() == 1 && files.is_empty() && !is_named;
    let mut meant = all.into_iter().filter(|one| is_only || one.is_of(&files));
    meant.find_map(|one| {
        let (is_of_here, command) = (one.is_of(&files), one.mode.command());
        let joined = (let_in(one.stream)?, one.pid);
        if !is_of_here {
            note(&format!(
                "note: no configuration here: asking the gateway that runs (process {}, `{command}`)",
                joined.1
            ));
        }
        Some(joined)
    })
}

/// A gateway that does not let in is not joined.
fn let_in(mut stream: UnixStream) -> Option<BufReader<UnixStream>> {
    stream.set_read_timeout(Some(LET_IN_WITHIN)).ok()?;
    stream.write_all(join::request(join::ANY).as_bytes()).ok()?;
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if head.len() > HEAD_BYTES_MAX || stream.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    stream.get_ref().set_read_timeout(None).ok()?;
    (head.split(' ').nth(1) == Some("101")).then_some(stream)
}
