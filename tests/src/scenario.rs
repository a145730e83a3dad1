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

/// Runs the scenarios of a list and panics with those that failed.
pub async fn run_all(case: Case) {
    let case = Arc::new(case);
    let mut failed = Vec::new();
    macro_rules! run {
        ($($name:literal => $scenario:path),* $(,)?) => {$(
            let running = tokio::spawn({ let case = case.clone(); async move { $scenario(&case).await } });
            if let Err(error) = running.await {
                failed.push(format!("{}: {}", $name, panic_text(error)));
            }
        )*};
    }
    run! {
        "list" => lists::list,
        "call" => calls::call,
        "read" => lists::read,
        "prompt" => lists::prompt,
        "completion" => lists::completion,
        "progress" => streams::progress,
        "cancel" => streams::cancel,
        "error" => calls::error,
        "list changed" => changes::list_changed,
        "updated" => changes::updated,
        "a form is asked" => asks::form,
        "a URL is asked" => asks::url,
        "a model is asked" => asks::sampling,
        "a model with tools is asked" => asks::sampling_tools,
        "roots are asked" => asks::roots,
        "two questions at once" => asks::two_at_once,
        "two rounds" => asks::two_rounds,
        "a state alone" => asks::state_alone,
        "declined" => asks::declined,
        "refused" => asks::refused,
        "withdrawn" => asks::withdrawn,
        "cancelled while asked" => asks::cancelled,
        "progress while asked" => asks::progress,
        "a prompt asks" => asks::prompt,
        "a resource asks" => asks::resource,
        "consent by URL" => asks::required,
        "structured contents" => contents::structured,
        "log levels" => logs::levels,
    }
    failed.extend(case.upstream.complaints().into_iter().map(|text| format!("the upstream complains: {text}")));
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
