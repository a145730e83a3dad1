//! Scenarios: what must hold between a client and an upstream, whatever stands between them.
//!
//! Each runs directly (which proves the harness) and through the gateway (which proves the gateway).

use std::sync::Arc;

use crate::client::Client;
use crate::revision::Revision;
use crate::upstream::Upstream;

mod asks;
mod calls;
mod changes;
mod contents;
mod lists;
mod logs;
mod streams;
mod tasks;

/// A client and the upstream that it means to reach.
pub struct Case {
    /// The client.
    pub client: Client,
    /// The upstream.
    pub upstream: Arc<Upstream>,
    /// The revision the upstream speaks.
    pub upstream_revision: Revision,
    /// Whether the client is the only one: then an upstream is told what that one can be asked.
    pub is_alone: bool,
    /// What the client finds in front of the upstream's names.
    pub prefix: String,
    /// Another upstream with a waiting call, that must not be disturbed.
    pub bystander: Option<Arc<Upstream>>,
}

impl Case {
    /// The name that the client knows a tool or prompt by.
    #[must_use]
    pub fn name(&self, own: &str) -> String {
        format!("{}{own}", self.prefix)
    }

    /// The URI of one of the upstream's resources.
    #[must_use]
    pub fn uri(&self, path: &str) -> String {
        format!("script://{}/{path}", self.upstream.name)
    }
}

macro_rules! rows {
    ($($name:literal, $proves:expr => $scenario:path),* $(,)?) => {
        /// Every row, with the rows of `docs/bridging.md` that it proves.
        pub const ROWS: &[(&str, &[&str])] = &[$(($name, &$proves)),*];

        /// Runs every row; gives those that failed.
        async fn run_rows(case: &Arc<Case>) -> Vec<String> {
            let mut failed = Vec::new();
            $(
                let running = tokio::spawn({ let case = case.clone(); async move { $scenario(&case).await } });
                if let Err(error) = running.await {
                    failed.push(format!("{}: {}", $name, panic_text(error)));
                }
            )*
            failed
        }
    };
}

rows! {
    "list", ["lists"] => lists::list,
    "call", ["calls"] => calls::call,
    "read", ["reads and prompts"] => lists::read,
    "prompt", ["reads and prompts"] => lists::prompt,
    "completion", ["completions"] => lists::completion,
    "progress", ["progress", "words of progress for 2024-11-05"] => streams::progress,
    "cancel", ["cancellation"] => streams::cancel,
    "error", ["errors"] => calls::error,
    "list changed", ["changed lists"] => changes::list_changed,
    "updated", ["subscriptions"] => changes::updated,
    "unsubscribed", ["subscriptions that end"] => changes::unsubscribed,
    "a form is asked", ["forms", "a question that the client's revision has not"] => asks::form,
    "a URL is asked", ["pages to visit", "a question that the client's revision has not"] => asks::url,
    "a model is asked", ["models"] => asks::sampling,
    "a model with tools is asked", ["models with tools", "a question that the client's revision has not"] => asks::sampling_tools,
    "roots are asked", ["roots"] => asks::roots,
    "two questions at once", ["questions at once"] => asks::two_at_once,
    "two rounds", ["rounds"] => asks::two_rounds,
    "a state alone", ["rounds without a question"] => asks::state_alone,
    "declined", ["a no for an answer"] => asks::declined,
    "refused", ["an error for an answer"] => asks::refused,
    "withdrawn", ["questions that are withdrawn"] => asks::withdrawn,
    "altered", ["a state that was altered, is another's or was used"] => asks::altered,
    "cancelled while asked", ["cancellation while asked"] => asks::cancelled,
    "progress while asked", ["progress"] => asks::progress,
    "a prompt asks", ["who may ask"] => asks::prompt,
    "a resource asks", ["who may ask"] => asks::resource,
    "consent by URL", ["pages that are needed first (`-32042`)"] => asks::required,
    "structured contents", ["structured contents", "structured contents that are no object"] => contents::structured,
    "log levels", ["log messages"] => logs::levels,
    "a task of its caller's own", ["tasks of one form"] => tasks::same_form,
    "a task asks", ["tasks of one form"] => tasks::asks,
    "a task is withdrawn", ["tasks of one form"] => tasks::withdrawn,
    "a task is told of", ["tasks of one form"] => tasks::told,
    "tasks are listed", ["lists of tasks"] => tasks::listed,
    "a task behind a plain call", ["plain calls of what runs as a task only"] => tasks::plain,
    "a plain call of a task is cancelled", ["a plain call of a task that is cancelled"] => tasks::plain_cancelled,
    "no such task", ["tasks of the other form"] => tasks::refused,
}

/// Runs all scenarios and panics with those that failed.
pub async fn run_all(case: Case) {
    let case = Arc::new(case);
    let mut failed = run_rows(&case).await;
    failed.extend(case.upstream.complaints().await.into_iter().map(|text| format!("the upstream complains: {text}")));
    failed.extend(case.client.complaints.all().into_iter().map(|text| format!("the client complains: {text}")));
    assert!(
        failed.is_empty(),
        "client {} → upstream {}: {} rows failed\n  {}",
        case.client.revision,
        case.upstream_revision,
        failed.len(),
        failed.join("\n  ")
    );
}

fn panic_text(error: tokio::task::JoinError) -> String {
    let payload = error.into_panic();
    let text = payload.downcast_ref::<String>().cloned();
    text.or_else(|| payload.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_else(|| "a panic".into())
}
