//! Looks at a running gateway: what `ls` and `status` show.

use std::time::Duration;

use anyhow::Context;
use serde::{Deserialize, Serialize};

use crate::config::fault::printable;
use crate::config::import::told;

use super::reach;
use crate::cli::args::Look;
use crate::cli::process::Failure;

/// An order is answered when it was done: a child is given its time to end.
const ORDER_PATIENCE: Duration = Duration::from_secs(40);

/// What a gateway says of all its upstreams.
#[derive(Debug, Deserialize)]
pub(crate) struct Whole {
    pub(crate) ready: bool,
    pub(crate) upstreams: Vec<Row>,
    pub(crate) limits: Option<Limits>,
    pub(crate) configuration: Option<Configuration>,
}

/// What became of its configuration since the start.
#[derive(Debug, Deserialize)]
pub(crate) struct Configuration {
    error: Option<String>,
    #[serde(default)]
    needs_restart: Vec<String>,
    #[serde(default)]
    disabled: Vec<String>,
    #[serde(default)]
    left_out: Vec<LeftOut>,
}

/// An upstream that is switched on and not there.
#[derive(Debug, Deserialize)]
pub(crate) struct LeftOut {
    pub(crate) name: String,
    why: String,
    advice: String,
}

impl LeftOut {
    /// Why it is not there, and what to do.
    pub(crate) fn why(&self) -> String {
        printable(&format!("{}; {}", self.why, self.advice))
    }

    /// The same with its name.
    pub(crate) fn told(&self) -> String {
        format!("upstream `{}` is left out: {}", printable(&self.name), self.why())
    }
}

impl Whole {
    /// What the gateway says that the command line or the configuration points to.
    pub(crate) fn of(look: &Look) -> Result<Self, Failure> {
        parse(&page(look)?)
    }

    /// The upstreams that are switched off.
    pub(crate) fn disabled(&self) -> &[String] {
        self.configuration.as_ref().map_or(&[], |configuration| &configuration.disabled)
    }

    /// The upstreams that are switched on and left out.
    pub(crate) fn left_out(&self) -> &[LeftOut] {
        self.configuration.as_ref().map_or(&[], |configuration| &configuration.left_out)
    }

    /// Those that are left out, in one line: one with the reason, of several how many; the command that says why is one that leads to the
    /// same configuration by these options. A gateway that was started for one command is gone with it.
    pub(crate) fn told_left_out(&self, is_of_own: bool, options: &str) -> Option<String> {
        match self.left_out() {
            [] => None,
            [one] => Some(one.told()),
            many => {
                let all = many.len() + self.upstreams.len();
                let command = if is_of_own { "doctor" } else { "ls" };
                Some(format!("{} of {all} upstreams are left out; `trunkline {command}{options}` says why", many.len()))
            }
        }
    }

    /// Whether the upstream of this name is configured, and switched off or left out.
    pub(crate) fn is_absent(&self, name: &str) -> bool {
        self.absent().any(|absent| absent == name)
    }

    fn absent(&self) -> impl Iterator<Item = &str> {
        self.disabled().iter().chain(self.left_out().iter().map(|one| &one.name)).map(String::as_str)
    }

    /// Why there is nothing to say of an upstream of this name.
    pub(crate) fn unknown(&self, name: &str) -> String {
        let shown = printable(name);
        if let Some(left_out) = self.left_out().iter().find(|one| one.name == name) {
            return left_out.told();
        }
        if self.is_absent(name) {
            return format!("`{shown}` is disabled in the configuration: set `enabled = true` in [upstreams.{shown}]");
        }
        let names: Vec<_> = self.upstreams.iter().map(|row| printable(&row.name)).collect();
        let known = told(name, &names.iter().map(|name| &**name).collect::<Vec<_>>());
        let of = |what: &str, names: Vec<String>| (!names.is_empty()).then(|| format!("{what}: {}", names.join(", ")));
        let off = of("disabled", self.disabled().iter().map(|off| printable(off)).collect());
        let left_out = of("left out", self.left_out().iter().map(|one| printable(&one.name)).collect());
        let absent = off.into_iter().chain(left_out).collect::<Vec<_>>().join("; ");
        let absent = if absent.is_empty() { absent } else { format!(" ({absent})") };
        format!("no upstream `{shown}`{known}{absent}")
    }

    /// The upstream that is switched off or left out and whose name a tool bears.
    pub(crate) fn absent_owner(&self, tool: &str) -> Option<&str> {
        let bears = |name: &&str| tool.strip_prefix(*name).is_some_and(|rest| rest.starts_with("__"));
        self.absent().find(bears)
    }

    /// What is to be known of the configuration: why that of the files is not in force.
    pub(crate) fn configuration(&self) -> String {
        let Some(Configuration { error, needs_restart, .. }) = &self.configuration else { return String::new() };
        let error = error.iter().map(|why| format!("configuration not reloaded: {}\n", printable(why)));
        let keys = (!needs_restart.is_empty()).then(|| printable(&needs_restart.join(", ")));
        let keys = keys.into_iter().map(|keys| format!("configuration changed for the next start: {keys}\n"));
        error.chain(keys).collect()
    }
}

/// How much is used of what all upstreams and clients share.
#[derive(Debug, Deserialize)]
pub(crate) struct Limits {
    pub(crate) memory: Memory,
}

/// What peers make the gateway keep.
#[derive(Debug, Deserialize)]
pub(crate) struct Memory {
    pub(crate) used_bytes: u64,
    pub(crate) limit_bytes: Option<u64>,
    pub(crate) dropped: u64,
}

/// What it says of one.
#[derive(Debug, Deserialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) transport: String,
    pub(crate) state: String,
    pub(crate) since_seconds: u64,
    pub(crate) uptime_seconds: Option<u64>,
    pub(crate) downtime_seconds: Option<u64>,
    pub(crate) restarts: u64,
    pub(crate) restarted_for: Option<String>,
    #[serde(default)]
    pub(crate) failed_starts: u64,
    pub(crate) last_error: Option<LastError>,
    pub(crate) cause: Option<String>,
    #[serde(default)]
    pub(crate) advice: String,
    pub(crate) retry_in_seconds: Option<u64>,
    pub(crate) pid: Option<u32>,
    pub(crate) revision: Option<String>,
    pub(crate) era: Option<String>,
    pub(crate) may_ask: Option<Vec<String>>,
    pub(crate) started_in_seconds: Option<f64>,
    pub(crate) items: Option<Items>,
    pub(crate) login: Option<Login>,
    #[serde(default)]
    pub(crate) remarks: Vec<String>,
    pub(crate) calls: Option<Calls>,
    #[serde(default)]
    pub(crate) client_sessions: usize,
    #[serde(default)]
    pub(crate) stderr: Vec<String>,
    #[serde(default)]
    pub(crate) instances: Vec<Row>,
}

/// What was last wrong with it, though it may be over.
#[derive(Debug, Deserialize)]
pub(crate) struct LastError {
    pub(crate) cause: String,
    #[serde(default)]
    pub(crate) advice: String,
    pub(crate) ago_seconds: u64,
}

/// The login of a person that it is called with.
#[derive(Debug, Deserialize)]
pub(crate) struct Login {
    pub(crate) issuer: String,
    pub(crate) expires_in_seconds: Option<u64>,
    #[serde(default)]
    pub(crate) refreshed: bool,
    #[serde(default)]
    pub(crate) wanted: Vec<String>,
}

/// How much it has to do.
#[derive(Debug, Deserialize)]
pub(crate) struct Calls {
    pub(crate) in_flight: usize,
    pub(crate) queued: usize,
}

/// How much it offers.
#[derive(Debug, Deserialize)]
pub(crate) struct Items {
    pub(crate) tools: usize,
    pub(crate) resources: usize,
    pub(crate) templates: usize,
    pub(crate) prompts: usize,
}

/// The calls of a gateway.
#[derive(Default, Deserialize)]
pub(super) struct CallsPage {
    pub(super) open: Vec<Call>,
    pub(super) ended: Vec<Call>,
}

/// A call under way, or one that has ended.
#[derive(Deserialize, Serialize)]
pub(super) struct Call {
    #[serde(default)]
    pub(super) principal: String,
    pub(super) method: String,
    pub(super) upstream: Option<String>,
    #[serde(default)]
    pub(super) name: String,
    pub(super) duration_seconds: f64,
    pub(super) outcome: Option<String>,
    pub(super) ended_ago_seconds: Option<f64>,
}

/// The page of the gateway that the command line or the configuration points to, as JSON.
pub(crate) fn page(look: &Look) -> Result<String, Failure> {
    let (status, page) = reach::gateway(look)?.ask("GET /readyz?verbose&format=json", "", reach::PATIENCE)?;
    // A gateway that is draining says 503, and what it says is no less true.
    match status {
        200 | 503 => Ok(page),
        401 | 403 => Err(anyhow::anyhow!("the gateway says: {}", printable(page.trim())).into()),
        status => Err(anyhow::anyhow!("not a Trunkline gateway: HTTP status {status}").into()),
    }
}

/// Another page of it: the status, and what is said.
pub(crate) fn get(look: &Look, path: &str) -> Result<(u16, String), Failure> {
    Ok(reach::gateway(look)?.ask(&format!("GET {path}"), "", reach::PATIENCE)?)
}

/// Sends an order there; gives the status and what is said.
pub(crate) fn post(look: &Look, path: &str) -> Result<(u16, String), Failure> {
    Ok(reach::gateway(look)?.ask(&format!("POST {path}"), "{}", ORDER_PATIENCE)?)
}

/// What a page says.
pub(super) fn parse(page: &str) -> Result<Whole, Failure> {
    Ok(serde_json::from_str(page).context("not a Trunkline gateway, or one of another version")?)
}

impl Row {
    /// Whether there is somebody who takes calls.
    pub(crate) fn is_up(&self) -> bool {
        matches!(&*self.state, "ready" | "degraded")
    }

    /// Whether it is about to be there or to fail, and nothing is known to be wrong with it so far. One that has crashed is shown as
    /// ending before its cause counts.
    pub(crate) fn is_coming(&self) -> bool {
        matches!(&*self.state, "starting" | "stopping") && self.ailment().is_none()
    }

    /// How many items of the list of this key it offers, where that is known.
    pub(crate) fn offers(&self, key: &str) -> Option<usize> {
        let Items { tools, resources, prompts, .. } = self.items.as_ref()?;
        Some(*match key {
            "resources" => resources,
            "prompts" => prompts,
            _ => tools,
        })
    }

    /// What ails it, and what its own cause advises, which may be nothing. One that is started for the first time is not ailing.
    pub(crate) fn ailment(&self) -> Option<(&str, &str)> {
        let (cause, advice) = match (&*self.state, &self.cause, &self.last_error) {
            // While it is tried again the cause of the last attempt is an error that was.
            ("starting", _, Some(error)) if self.downtime_seconds.is_some_and(|down| error.ago_seconds <= down) => {
                (&error.cause, &error.advice)
            }
            ("failed" | "backing_off" | "degraded", Some(cause), _) => (cause, &self.advice),
            ("failed" | "backing_off" | "degraded", None, Some(error)) => (&error.cause, &error.advice),
            _ => return None,
        };
        let bare = cause.trim().strip_suffix(advice.as_str()).and_then(|rest| rest.strip_suffix("; "));
        Some((bare.filter(|_| !advice.is_empty()).unwrap_or(cause.trim()), advice))
    }

    /// Why nothing is to be had of it, for a person; `None` where something is. A gateway that was started for one command, as `is_of_own`
    /// says, is gone with it, so that nobody can look at it or start something in it.
    pub(crate) fn why_not(&self, is_of_own: bool) -> Option<String> {
        let (name, state) = (printable(&self.name), printable(&self.state));
        match self.ailment() {
            Some((cause, _)) if !self.is_up() && cause.is_empty() => Some(format!("upstream `{name}` is {state}")),
            Some((cause, advice)) if !self.is_up() => {
                let advice = match advice {
                    // Only a child has a stderr.
                    "" if is_of_own && self.transport == "stdio" => {
                        format!("`trunkline tools {name} --log-level info` shows what it writes to stderr")
                    }
                    "" if is_of_own => "run `trunkline doctor`".to_owned(),
                    "" => format!("look at `trunkline status {name}`"),
                    advice => printable(advice),
                };
                Some(format!("upstream `{name}` is {state}: {}; {advice}", printable(cause)))
            }
            None if self.state == "starting" => Some(format!("upstream `{name}` is still starting; try again")),
            None if self.state == "stopped" => {
                Some(format!("upstream `{name}` is stopped; run `trunkline start {name}`"))
            }
            None if !self.is_up() && self.state != "idle" => Some(format!("upstream `{name}` is {state}")),
            _ => None,
        }
    }
}

/// Seconds, as a person says them.
pub(crate) fn time(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// A count and its noun.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(text: &str) -> Row {
        let own = r#""name":"x","transport":"http","since_seconds":1,"restarts":0"#;
        serde_json::from_str(&format!("{{{own},{text}}}")).unwrap()
    }

    #[test]
    fn what_ails_an_upstream_is_told_without_its_advice_and_a_first_start_is_no_ailment() {
        let failed = row(
            r#""state":"failed","cause":"needs login; run `trunkline login x`","advice":"run `trunkline login x`""#,
        );
        assert_eq!(failed.ailment(), Some(("needs login", "run `trunkline login x`")));
        assert_eq!(failed.why_not(false).unwrap(), "upstream `x` is failed: needs login; run `trunkline login x`");
        let again = row(r#""state":"starting","downtime_seconds":5,"last_error":{"cause":"gone","ago_seconds":5}"#);
        assert_eq!(again.ailment(), Some(("gone", "")));
        assert_eq!(again.why_not(false).unwrap(), "upstream `x` is starting: gone; look at `trunkline status x`");
        assert_eq!(again.why_not(true).unwrap(), "upstream `x` is starting: gone; run `trunkline doctor`");
        let child = Row { transport: "stdio".to_owned(), ..row(r#""state":"failed","cause":"gone""#) };
        let shows = "`trunkline tools x --log-level info` shows what it writes to stderr";
        assert_eq!(child.why_not(true).unwrap(), format!("upstream `x` is failed: gone; {shows}"));
        for merely in [
            r#""state":"starting","downtime_seconds":5"#,
            r#""state":"starting","downtime_seconds":5,"cause":"it has not answered yet""#,
            r#""state":"starting","downtime_seconds":5,"last_error":{"cause":"of a life before","ago_seconds":9}"#,
        ] {
            let row = row(merely);
            assert_eq!(row.ailment(), None, "{merely}");
            assert_eq!(row.why_not(false).unwrap(), "upstream `x` is still starting; try again");
        }
        for (state, is_coming, why) in [
            ("stopping", true, Some("upstream `x` is stopping")),
            ("backing_off", false, Some("upstream `x` is backing_off")),
            ("starting", true, Some("upstream `x` is still starting; try again")),
            ("idle", false, None),
            ("ready", false, None),
        ] {
            let row = row(&format!(r#""state":"{state}""#));
            assert_eq!((row.is_coming(), row.why_not(false).as_deref()), (is_coming, why), "{state}");
        }
        assert!(!again.is_coming() && !failed.is_coming(), "it is known what ails them");
        let degraded = row(r#""state":"degraded","cause":"it is silent""#);
        assert_eq!((degraded.ailment(), degraded.why_not(false)), (Some(("it is silent", "")), None), "it takes calls");
    }

    #[test]
    fn times_are_said_as_people_say_them() {
        assert_eq!([5, 65, 3725, 90_000].map(time), ["5 s", "1 min 5 s", "1 h 2 min", "1 d 1 h"]);
        assert_eq!((counted(1, "tool"), counted(0, "tool")), ("1 tool".into(), "0 tools".into()));
    }
}
