//! Stateless clients over HTTP: the response's stream is the call.

use super::body::Body;
use super::endpoint::Endpoint;
use super::feeds::CallFeed;
use super::post::takes_streams;
use super::respond;
use super::stream::Stream;
use crate::call::Refusal;
use crate::downstream::modern;
use crate::downstream::peer::Who;
use crate::downstream::running::{Running, Turn, Turns};
use crate::protocol::meta::Meta;
use crate::protocol::{Id, Method, Object, Revision};
use http::{HeaderMap, Response};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// How long headers wait for the first event or the outcome before a stream is opened.
const DECIDE_AFTER: Duration = Duration::from_secs(2);

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

/// The first frame, where it comes before a stream must be opened.
pub(super) async fn first(work: &mut impl Turns) -> Option<Turn> {
    // What is there at once needs no clock.
    match std::future::poll_fn(|cx| Poll::Ready(work.poll_turn(cx))).await {
        Poll::Ready(turn) => Some(turn),
        Poll::Pending => tokio::time::timeout(DECIDE_AFTER, work.turn()).await.ok(),
    }
}

/// The response, for a client that reads no streams and so hears of no event.
pub(super) async fn last(work: &mut impl Turns) -> Turn {
    loop {
        let turn = work.turn().await;
        if !matches!(turn, Turn::Event(_)) {
            return turn;
        }
    }
}
