//! The gateway that runs for the configuration that is looked at, and no other.

use std::path::PathBuf;

use serde::Deserialize;

use super::kept::Kept;
use crate::admin::control;
use crate::cli::args::{Look, Shared, settings};
use crate::cli::look;
use crate::cli::look::Whole;
use crate::telemetry::config::Control;

/// What is known of running gateways.
pub(super) struct Gateway {
    look: Look,
    /// Others run, and with another configuration: their processes.
    others: Vec<u32>,
    /// Whether it is looked at though nothing is configured here.
    is_foreign: bool,
}

/// The tools of a running gateway.
#[derive(Deserialize)]
struct Tools {
    tools: Vec<Tool>,
}

#[derive(Deserialize)]
struct Tool {
    name: String,
}

impl Gateway {
    /// The gateway of the configuration that the command line points to. Where nothing is configured, any that runs alone.
    pub(super) fn of(shared: &Shared) -> Self {
        let (Control { folders, files }, _) = settings::control(shared);
        let (ours, others): (Vec<_>, Vec<_>) =
            control::running(&folders).into_iter().partition(|one| one.is_of(&files));
        let of =
            |config: Vec<PathBuf>, pid| Look { shared: Shared { config, ..shared.clone() }, pid, ..Look::default() };
        // Of several the one that serves many; those that hosts have started for themselves have the same servers.
        let own = ours.iter().max_by_key(|one| one.mode.is_of_many()).map(|one| one.pid);
        let others: Vec<u32> = others.iter().map(|one| one.pid).collect();
        match (own, files.is_empty(), &others[..]) {
            (Some(pid), ..) => Self { look: of(files, Some(pid)), others: Vec::new(), is_foreign: false },
            (None, true, [only]) => Self { look: of(files, Some(*only)), others: Vec::new(), is_foreign: true },
            // With the files named no other is taken for theirs.
            (None, ..) => Self { look: of(files, None), others, is_foreign: false },
        }
    }

    /// The names of all tools, as clients see them, where it runs.
    pub(super) fn tools(&self) -> Option<Vec<String>> {
        let (status, page) = look::get(&self.look, "/api/v1/tools").ok()?;
        let page: Tools = serde_json::from_str(&page).ok().filter(|_| status == 200)?;
        Some(page.tools.into_iter().map(|tool| tool.name).collect())
    }

    /// What it says of its upstreams, where it runs.
    pub(super) fn whole(&self) -> Option<Whole> {
        Whole::of(&self.look).ok()
    }

    /// How many tools there are, or why nobody knows. `kept` are those that are known without it.
    pub(super) fn told(&self, tools: Option<&[String]>, kept: Option<&Kept>) -> String {
        let process = |pids: &[u32]| pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let untold = match &self.others[..] {
            [] => match self.look.pid {
                Some(pid) => format!("the gateway that runs (process {pid}) does not answer"),
                None => "no gateway runs".to_owned(),
            },
            [one] => format!("the gateway that runs (process {one}) has another configuration"),
            many => format!("the gateways that run (processes {}) have another configuration", process(many)),
        };
        match (tools, self.look.pid) {
            (Some(tools), Some(pid)) if self.is_foreign => {
                format!(
                    "tools: {}, by the gateway that runs (process {pid}), which has a configuration of its own",
                    tools.len()
                )
            }
            (Some(tools), _) => format!("tools: {}, by the running gateway", tools.len()),
            (None, _) => match kept {
                Some(kept) => format!("tools: {}; {untold}", kept.told()),
                None => {
                    format!("tools: not known, since {untold} and no list is kept; limits of hosts were not looked at")
                }
            },
        }
    }
}
