//! What the parts of the gateway are made with, by the configuration and by who the clients are.

use super::ceiling;
use crate::config::Config;
use crate::downstream::parking::key;
use crate::memory::budget::Budget;
use crate::router::{Secret, Terms};
use crate::runtime::Tasks;
use crate::telemetry::calls::Calls;
use crate::telemetry::observe::Observe;
use crate::telemetry::observe::traces::{Post, Traces};
use crate::upstream::KeptSessions;
use crate::upstream::remote::Courier;
use std::sync::Arc;

/// What a router is made with; its client may be the one on stdin and stdout.
pub(super) fn of(config: &Config, is_of_one_client: bool) -> Terms {
    Terms {
        naming: config.naming.clone(),
        page_size: config.catalog.page_size,
        first_list_wait: config.catalog.first_wait(is_of_one_client),
        instructions: config.server.instructions.clone(),
        unknown: config.extensions,
        pins: config.catalog.pins.clone(),
        secret: secret(config),
    }
}

/// What all peers together may make the gateway keep.
pub fn budget(config: &Config) -> Budget {
    Budget::new(config.server.memory_limit.unwrap_or_else(ceiling::default_limit))
}

/// Counts calls, and makes spans of them where that is asked for; those are sent until `tasks` end.
pub(super) fn observe(config: &Config, calls: &Calls, budget: &Budget, tasks: &Tasks) -> Observe {
    let observe = Observe::new(config.metrics, calls.clone());
    let Some((traces, remote)) = &config.traces else { return observe };
    let courier = match Courier::new(remote, budget, tasks.clone()) {
        Ok(courier) => Arc::new(courier),
        Err(cause) => {
            tracing::error!(cause, "no traces: their collector ([traces] endpoint) cannot be reached");
            return observe;
        }
    };
    let post: Post = Box::new(move |body| {
        let courier = courier.clone();
        Box::pin(async move { courier.post(body, "application/x-protobuf").await })
    });
    observe.tracing(Some(Traces::start(traces, post, tasks)))
}

/// Where the sessions that clients have with upstreams are kept for the next run: where a client can come back to one.
pub(super) fn kept_sessions(config: &Config, is_of_one_client: bool) -> Option<Arc<KeptSessions>> {
    let (session, state) = (&config.server.session, config.server.state_folder.clone()?);
    if is_of_one_client || !session.required || !session.resume_upstream {
        return None;
    }
    let (configured, folder) = (session.signing_keys.clone(), state.clone());
    let secrets = Box::new(move || key::lasting(&configured, Some(&folder)));
    Some(KeptSessions::new(&state, secrets, session.idle_timeout))
}

/// Makes the signing key if there is none; warns and returns the cause if no key outlives the process.
pub(super) fn signing_key_fault(config: &Config) -> Option<String> {
    let cause = key::fault(&config.server.session.signing_keys, config.server.state_folder.as_deref())?;
    tracing::warn!(
        cause,
        "signing key not kept: sessions and the state that clients carry end with this process; correct the cause, or set \
         server.session.signing_key, and restart"
    );
    Some(cause)
}

/// What the ids of tasks are wrapped with: the key that seals what clients carry, so that they too survive a restart.
fn secret(config: &Config) -> Secret {
    let (configured, folder) = (config.server.session.signing_keys.clone(), config.server.state_folder.clone());
    Secret::found_by(move || key::find(&configured, folder.as_deref()))
}
