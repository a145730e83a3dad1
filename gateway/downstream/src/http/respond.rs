//! The few shapes that responses have.

use super::stream::{Body, Stream};
use crate::call::refusal::{Reason, Refusal};
use crate::call::share::Share;
use crate::metrics::messages;
use crate::protocol::frame;
use crate::protocol::frame::message::Id;
use crate::protocol::revision::Revision;
use crate::response::{EncodedResponse, status};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const NO_CACHE: HeaderValue = HeaderValue::from_static("no-cache, no-transform");
const NO: HeaderValue = HeaderValue::from_static("no");
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
const ALLOW: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");
const CLOSE: HeaderValue = HeaderValue::from_static("close");
const IDENTITY: HeaderValue = HeaderValue::from_static("identity");
const SOON: HeaderValue = HeaderValue::from_static("10");

/// A JSON text, with a length.
pub(super) fn json(status: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    json_in(HeaderMap::new(), status, text.into())
}

/// The same, with its headers in an empty map. The connection reads the next request into the map of the last response: one that has
/// room for it need not grow.
fn json_in(map: HeaderMap, status: StatusCode, text: Bytes) -> Response<Body> {
    messages::CLIENT.sent();
    let mut response = Response::new(Body::Full(text));
    *response.status_mut() = status;
    *response.headers_mut() = map;
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response
}

/// A call's answer, with its headers in an empty map.
pub(super) fn answer(answer: EncodedResponse, map: HeaderMap) -> Response<Body> {
    let retry_after = answer.retry_after;
    let mut response = json_in(map, answer.status, answer.frame.into());
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// What was refused before it became a call.
pub(super) fn refused(id: Option<&Id>, refusal: &Refusal, revision: Revision) -> Response<Body> {
    let text = frame::message::error(id.map(|id| &id.raw()[..]), refusal.to_rpc(revision).raw());
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

/// A body that is compressed: it is not unpacked, and it is said what is read.
pub(super) fn encoded() -> Response<Body> {
    let why = "the body has a `Content-Encoding`, and this endpoint reads none; send it as it is";
    let mut response = misused(StatusCode::UNSUPPORTED_MEDIA_TYPE, why);
    response.headers_mut().insert(header::ACCEPT_ENCODING, IDENTITY);
    response
}

/// A method that a path does not take, and the one that it does.
pub(super) fn no_method(why: &str, takes: &'static str) -> Response<Body> {
    let mut response = misused(StatusCode::METHOD_NOT_ALLOWED, why);
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(takes));
    response
}

/// A request with a header that decides something and stands twice, of a stateless client or of another.
pub(super) fn doubled(name: &HeaderName, is_modern: bool) -> Response<Body> {
    let (reason, revision) = match is_modern {
        true => (Reason::HeaderMismatch, Revision::NEWEST_MODERN),
        false => (Reason::InvalidRequest, Revision::NEWEST_LEGACY),
    };
    refused(None, &Refusal::new(reason, format!("the header `{name}` stands twice")), revision)
}

/// What came, or is still asked for, by what counts no more.
pub(super) fn revoked(challenge: HeaderValue) -> Response<Body> {
    let why = "what this request was let in with was revoked or has expired while it was under way";
    let mut response = misused(StatusCode::UNAUTHORIZED, why);
    response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    response
}

/// A connection too many of a share: it is closed.
pub(super) fn crowded(share: &Share) -> Response<Body> {
    let why = format!("{share} has its share of the connections; close some, or reuse them");
    let refusal = Refusal::new(Reason::Busy, why);
    last(refused(None, &refusal, Revision::NEWEST_LEGACY))
}

/// The last response of a connection, which says so.
pub(super) fn last(mut response: Response<Body>) -> Response<Body> {
    response.headers_mut().insert(header::CONNECTION, CLOSE);
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
