//! Looks at a running gateway: what `ls` and `status` show.

use std::time::Duration;

use anyhow::Context;
use serde::{Deserialize, Serialize};

use crate::config::fault::printable;
use crate::config::import::told;

use super::reach;
use super::row::Row;
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
    signing_key_error: Option<String>,
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

    /// Those that are left out, in one line: one with the reason, of several how many. A gateway that was started for one command is gone
    /// with it, so that nobody can look at it.
    pub(crate) fn told_left_out(&self, is_of_own: bool) -> Option<String> {
        match self.left_out() {
            [] => None,
            [one] => Some(one.told()),
            many => {
                let all = many.len() + self.upstreams.len();
                let command = if is_of_own { "doctor" } else { "ls" };
                Some(format!("{} of {all} upstreams are left out; `trunkline {command}` says why", many.len()))
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
        let Some(Configuration { error, signing_key_error, needs_restart, .. }) = &self.configuration else {
            return String::new();
        };
        let error = error.iter().map(|why| format!("configuration not reloaded: {}\n", printable(why)));
        let keys = (!needs_restart.is_empty()).then(|| printable(&needs_restart.join(", ")));
        let keys = keys.into_iter().map(|keys| format!("configuration changed for the next start: {keys}\n"));
        let key = signing_key_error
            .iter()
            .map(|why| format!("signing key not kept, sessions end with the gateway's process: {}\n", printable(why)));
        error.chain(keys).chain(key).collect()
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

    #[test]
    fn times_are_said_as_people_say_them() {
        assert_eq!([5, 65, 3725, 90_000].map(time), ["5 s", "1 min 5 s", "1 h 2 min", "1 d 1 h"]);
        assert_eq!((counted(1, "tool"), counted(0, "tool")), ("1 tool".into(), "0 tools".into()));
    }
}
