//! How a command can fail, and with which exit code.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::answer::is_unread;
use super::table::{Room, fitted};
use crate::config::fault::{Fault, Faults, count};
use crate::secrets::visible_json;
use crate::telemetry::logging::{complain, flush, is_json, say};

/// Why a command did not do what was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something failed: exit code 1.
    Failed(anyhow::Error),
    /// Something is wrong, and that was said already, or nobody reads: exit code 1.
    Found,
    /// The configuration is wrong: exit code 3.
    Config(Faults),
    /// The configuration is wrong, and that was said already: exit code 3.
    Said,
}

/// Whether a program reads what this command says.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// From here on errors are said as JSON.
pub(crate) fn speak_json() {
    IS_JSON.store(true, Ordering::Relaxed);
}

/// Says on stderr what went wrong, such as with one of several things, and with which code the command ends for it; `error:` stands before
/// it where a person reads.
pub(crate) fn tell(text: &str, code: u8) {
    match IS_JSON.load(Ordering::Relaxed) {
        true => complain_json(&json!({ "error": text, "exit_code": code })),
        false => complain(&in_its_room(&format!("error: {text}"))),
    }
}

/// Says something beside the answer on stderr. A program reads it as JSON, as it does all else.
pub(crate) fn note(text: &str) {
    match IS_JSON.load(Ordering::Relaxed) {
        true => complain_json(&json!({ "note": text.strip_prefix("note: ").unwrap_or(text) })),
        false => say(&in_its_room(text)),
    }
}

/// A text as stderr has room for it: on a terminal a long line goes on below.
pub(crate) fn in_its_room(text: &str) -> String {
    fitted(text, Room::of_stderr().columns)
}

/// Whether a program reads what this command says.
pub(crate) fn speaks_json() -> bool {
    IS_JSON.load(Ordering::Relaxed)
}

/// Says wrong usage for a program.
pub(crate) fn tell_usage(text: &str) {
    let text = text.trim().strip_prefix("error: ").unwrap_or(text.trim());
    complain_json(&json!({ "error": text, "exit_code": 2 }));
}

fn complain_json(value: &Value) {
    complain(&visible_json(&value.to_string()));
}

impl Failure {
    /// Says what happened on stderr, and waits a moment until it is written: the process ends with this.
    pub(crate) fn end(self) -> ExitCode {
        if IS_JSON.load(Ordering::Relaxed) {
            self.json().iter().for_each(complain_json);
        } else {
            self.text().iter().for_each(|text| complain(text));
        }
        flush();
        ExitCode::from(self.code())
    }

    /// The same where nothing can be handed up any more.
    pub(crate) fn end_at_once(self) -> ! {
        let code = self.code();
        self.end();
        std::process::exit(code.into())
    }

    fn code(&self) -> u8 {
        match self {
            Self::Failed(_) | Self::Found => 1,
            Self::Config(_) | Self::Said => 3,
        }
    }

    /// What is still to be said, for a person.
    fn text(&self) -> Option<String> {
        match self {
            // In a log of JSON the level says it.
            Self::Failed(error) if is_json() => Some(format!("{error:#}")),
            Self::Failed(error) => Some(in_its_room(&format!("error: {error:#}"))),
            Self::Config(Faults(faults)) => Some(Room::of_stderr().layout().list(faults) + &count(faults)),
            Self::Found | Self::Said => None,
        }
    }

    /// The same for a program.
    fn json(&self) -> Option<Value> {
        let code = self.code();
        match self {
            Self::Failed(error) => Some(json!({ "error": format!("{error:#}"), "exit_code": code })),
            Self::Config(faults) => {
                let all: Vec<Value> = faults.0.iter().map(Fault::json).collect();
                let text = format!("the configuration is wrong: {}", count(&faults.0));
                Some(json!({ "error": text, "exit_code": code, "faults": all }))
            }
            Self::Found | Self::Said => None,
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        match is_unread(&error) {
            true => Self::Found,
            false => Self::Failed(error.into()),
        }
    }
}

impl From<Faults> for Failure {
    fn from(faults: Faults) -> Self {
        Self::Config(faults)
    }
}
