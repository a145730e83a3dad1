//! How a command can fail, and with which exit code.

use std::process::ExitCode;

use super::answer::is_unread;
use crate::config::fault::Faults;
use crate::telemetry::logging::{complain, flush, is_json};

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

impl Failure {
    /// Says what happened on stderr, and waits a moment until it is written: the process ends with this.
    pub(crate) fn end(self) -> ExitCode {
        let code = match self {
            Self::Failed(error) => {
                // In a log of JSON the level says it.
                let prefix = if is_json() { "" } else { "error: " };
                complain(&format!("{prefix}{error:#}"));
                ExitCode::from(1)
            }
            Self::Config(faults) => {
                complain(&faults.to_string());
                ExitCode::from(3)
            }
            Self::Found => ExitCode::from(1),
            Self::Said => ExitCode::from(3),
        };
        flush();
        code
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
