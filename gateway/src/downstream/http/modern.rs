//! Stateless clients over HTTP: the response's stream is the call.

use super::body::Body;
use super::decide::{first, last};
use super::endpoint::Endpoint;
use super::feeds::CallFeed;
use super::heads::takes_streams;
use super::respond;
use super::stream::Stream;
use crate::call::Refusal;
use crate::downstream::modern;
use crate::downstream::peer::Who;
use crate::downstream::running::{Running, Turn};
use crate::protocol::meta::Meta;
use crate::protocol::{Id, Method, Object, Revision};
use http::{HeaderMap, Response};
use std::sync::Arc;

/// Answers a request.
pub(super) async fn request(
    endpoint: &Arc<Endpoint>,
    who: &Who,
    headers: &HeaderMap,
    request: (Id, Method, Object, Meta),
) -> Response<Body> {
    let id = request.0.clone();
    match modern::request(&endpoint.edge, who, request, Some(headers), None) {
        Ok(running) => run(endpoint, running.listening_until(&endpoint.edge.tasks), takes_streams(headers)).await,
        Err(refusal) => respond::refused(Some(&id), &refusal, Revision::NEWEST_MODERN),
    }
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

async fn run(endpoint: &Arc<Endpoint>, mut running: Running, takes_streams: bool) -> Response<Body> {
    let is_listen = running.asked.method == Method::Listen;
    let first = if takes_streams || is_listen { first(&mut running).await } else { Some(last(&mut running).await) };
    let event = match first {
        Some(Turn::End(answer)) => return respond::answer(answer),
        Some(Turn::Cancelled) => return respond::silence(),
        Some(Turn::Event(frame)) => Some(frame),
        None => None,
    };
    let kind = if is_listen { "listen" } else { "sse" };
    let feed = CallFeed::new(running, event);
    respond::stream(Stream::new(feed, Vec::new(), endpoint.config.sse_keepalive, kind))
}
