//! Scenarios: what must hold between a client and an upstream, whatever stands between them.
//!
//! Each runs directly (which proves the harness) and through the gateway (which proves the gateway).

use std::sync::Arc;

use crate::client::Client;
use crate::revision::Revision;
use crate::upstream::Upstream;

mod calls;
mod changes;
mod lists;
mod streams;

/// A client and the upstream that it means to reach.
pub struct Case {
    /// The client.
    pub client: Client,
    /// The upstream.
    pub upstream: Arc<Upstream>,
    /// The revision the upstream speaks.
    pub upstream_revision: Revision,
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

/// Runs every scenario and panics with the rows that failed.
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
    }
    failed.extend(case.upstream.complaints().into_iter().map(|text| format!("the upstream complains: {text}")));
    failed.extend(case.client.complaints.all().into_iter().map(|text| format!("the client complains: {text}")));
    assert!(
        failed.is_empty(),
        "client {} → upstream {}: {} of 10 rows failed\n  {}",
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
