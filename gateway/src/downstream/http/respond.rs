//! The few shapes that responses have.

use super::body::Body;
use super::stream::Stream;
use crate::call::{Reason, Refusal};
use crate::downstream::asked::Answer;
use crate::downstream::status;
use crate::protocol::{Id, Revision, frame};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const NO_CACHE: HeaderValue = HeaderValue::from_static("no-cache, no-transform");
const NO: HeaderValue = HeaderValue::from_static("no");
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
const ALLOW: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");
const SOON: HeaderValue = HeaderValue::from_static("10");

/// A JSON text, with a length.
pub(super) fn json(status: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::Full(text.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response
}

/// A call's answer.
pub(super) fn answer(answer: Answer) -> Response<Body> {
    json(answer.status, answer.frame)
}

/// What was refused before it became a call.
pub(super) fn refused(id: Option<&Id>, refusal: &Refusal, revision: Revision) -> Response<Body> {
    let text = frame::error(id.map(|id| &id.raw()[..]), refusal.to_rpc(revision).raw());
    let mut response = json(status::of_refusal(&refusal.reason), text);
    if response.status() == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(header::RETRY_AFTER, SOON);
    }
    response
}

/// A request that is no use of this endpoint, in HTTP's own terms.
pub(super) fn misused(status: StatusCode, why: &str) -> Response<Body> {
    let mut response = refused(None, &Refusal::new(Reason::InvalidRequest, why), Revision::NEWEST_LEGACY);
    *response.status_mut() = status;
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(header::ALLOW, ALLOW);
    }
    response
}

/// A status and nothing else.
pub(super) fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = status;
    response
}

/// A stream of events.
pub(super) fn stream(stream: Stream) -> Response<Body> {
    events(Body::Stream(Box::new(stream)))
}

/// A stream that ended before it said anything: what a legacy client gets for a call that it has withdrawn.
pub(super) fn silence() -> Response<Body> {
    events(Body::Empty)
}

fn events(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, EVENTS);
    headers.insert(header::CACHE_CONTROL, NO_CACHE);
    headers.insert(BUFFERING, NO);
    response
}
