//! Stateless clients over HTTP: the response's stream is the call.

use super::endpoint::Endpoint;
use super::work::Work;
use crate::call::Refusal;
use crate::downstream::modern;
use crate::downstream::peer::Who;
use crate::protocol::meta::Meta;
use crate::protocol::{Id, Method, Object};
use http::HeaderMap;
use std::sync::Arc;

/// Begins a request.
pub(super) fn request(
    endpoint: &Arc<Endpoint>,
    who: &Who,
    headers: &HeaderMap,
    request: (Id, Method, Object, Meta),
) -> Result<Work, Refusal> {
    let running = modern::request(&endpoint.edge, who, request, Some(headers), None)?;
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
