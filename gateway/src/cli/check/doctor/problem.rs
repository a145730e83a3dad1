//! One thing that is wrong, and what to do about it.

use serde::Serialize;

use super::fix;
use crate::config::fault::Fault;

/// One thing that is wrong.
#[derive(Debug, Serialize)]
pub(super) struct Problem {
    pub(super) text: String,
    pub(super) fix: String,
    /// The upstream that it concerns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) upstream: Option<String>,
}

impl Problem {
    pub(super) fn new(text: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { text: text.into(), fix: fix.into(), upstream: None }
    }

    pub(super) fn of_upstream(name: &str, text: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { upstream: Some(name.to_owned()), ..Self::new(text, fix) }
    }
}

impl From<&Fault> for Problem {
    fn from(fault: &Fault) -> Self {
        let place = fault.place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default();
        let fix = fault.label.iter().chain(&fault.hint).cloned().collect::<Vec<_>>().join("; ");
        let fix = if fix.is_empty() { fix::mending(fault) } else { fix };
        Self { upstream: fault.upstream.clone(), ..Self::new(format!("{place}{}", fault.text), fix) }
    }
}
