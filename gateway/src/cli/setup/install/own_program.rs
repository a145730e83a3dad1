//! The host's own program that edits its file. A running Claude Code keeps that file in mind, and writes over what is put beside it.
//!
//! The programs of other hosts are not asked: they cannot write time-outs, or cannot take an entry out again.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use super::entry::{Entry, NAME};
use crate::cli::args::setup::Scope;
use crate::cli::setup::hosts::Host;
use crate::cli::setup::import;

/// So long it may take; after that the file is edited here.
const WAIT: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(20);

/// What a host's program is to do.
#[derive(Debug)]
pub(super) struct OwnProgram {
    name: &'static str,
    orders: Vec<Vec<String>>,
    /// The entry that is there then; none.
    leaves: Option<Entry>,
}

impl OwnProgram {
    /// Has the entry written, in place of one that is there.
    pub(super) fn adding(host: &Host, scope: Scope, entry: &Entry, replaces: bool) -> Option<Self> {
        let name = name(host)?;
        let text = json!({ "type": "stdio", "command": entry.command, "args": entry.args }).to_string();
        let add = words(&["mcp", "add-json", "--scope", of(scope), NAME, &text]);
        let orders = replaces.then(|| removal(scope)).into_iter().chain([add]).collect();
        Some(Self { name, orders, leaves: Some(entry.clone()) })
    }

    /// Has the entry taken out.
    pub(super) fn removing(host: &Host, scope: Scope) -> Option<Self> {
        Some(Self { name: name(host)?, orders: vec![removal(scope)], leaves: None })
    }

    /// As it is typed.
    pub(super) fn name(&self) -> String {
        format!("{} mcp", self.name)
    }

    /// Whether the program is there, and the file says afterwards what it should.
    pub(super) fn does_it(&self, host: &Host, file: &Path) -> bool {
        if !self.orders.iter().all(|order| runs(self.name, order)) {
            return false;
        }
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let found = match text.trim().is_empty() {
            true => Ok(None),
            false => import::entry_in(&text, host, NAME),
        };
        found.is_ok_and(|found| found.map(|(command, args)| Entry { command, args }) == self.leaves)
    }
}

fn name(host: &Host) -> Option<&'static str> {
    (host.id == "claude-code").then_some("claude")
}

fn removal(scope: Scope) -> Vec<String> {
    words(&["mcp", "remove", "--scope", of(scope), NAME])
}

fn of(scope: Scope) -> &'static str {
    match scope {
        Scope::User => "user",
        Scope::Project => "project",
    }
}

fn words(all: &[&str]) -> Vec<String> {
    all.iter().map(|word| (*word).to_owned()).collect()
}

/// Whether it ends well in time. Nobody answers what it asks.
#[allow(clippy::disallowed_methods, reason = "a command that does nothing else")]
fn runs(program: &str, order: &[String]) -> bool {
    let mut command = Command::new(program);
    command.args(order).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else { return false };
    let until = Instant::now() + WAIT;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if Instant::now() < until => std::thread::sleep(LOOK),
            _ => {
                // It may have ended by now.
                let _ = child.kill();
                let _ = child.wait();
                return false;
            }
        }
    }
}
