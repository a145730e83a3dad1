//! Stateless clients over HTTP: the response's stream is the call.

use super::endpoint::Endpoint;
use super::work::Work;
use crate::call::refusal::Refusal;
use crate::edge::Heads;
use crate::edge::client_era::Who;
use crate::eras::modern;
use crate::protocol::frame::Method;
use crate::protocol::frame::message::Id;
use crate::protocol::meta::Meta;
use crate::protocol::value::Object;
use std::sync::Arc;

/// Begins a request.
pub(super) fn request(
    endpoint: &Arc<Endpoint>,
    who: Who,
    heads: &Heads<'_>,
    request: (Id, Method, Object, Meta),
) -> Result<Work, Refusal> {
    let running = modern::request(&endpoint.edge, &who, request, Some(heads), None)?;
    Ok(Work::Modern(running.listening_until(&endpoint.edge.tasks)))
}

/// Takes a notification.
pub(super) fn notification(
    endpoint: &Endpoint,
    who: &Who,
    method: Method,
    params: Object,
    meta: Meta,
) -> Result<(), Refusal> {
    // Over HTTP a closed stream is the only cancellation.
    if method == Method::Cancelled {
        return Ok(());
    }
    modern::notification(&endpoint.edge, who, method, params, meta)
}
