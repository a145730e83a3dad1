//! Whether a request becomes a WebSocket (RFC 6455, 4.2): judged after host, origin and token, before a frame is read.

use super::websocket::{Terms, serve};
use crate::call::refusal::{Reason, Refusal};
use crate::config::Faces;
use crate::edge::client_era::Who;
use crate::http::endpoint::Endpoint;
use crate::http::respond;
use crate::http::stream::Body;
use crate::listen::Arrival;
use crate::protocol::framing::websocket;
use crate::protocol::revision::Revision;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Version, header};
use std::sync::Arc;

/// Where a WebSocket is opened.
pub(crate) const WEBSOCKET: &str = Faces::WEBSOCKET_PATH;
/// The subprotocol of MCP.
const SUBPROTOCOL: &str = "mcp";
const UPGRADE: HeaderValue = HeaderValue::from_static("Upgrade");
const PROTOCOL: HeaderValue = HeaderValue::from_static("websocket");
const VERSION: HeaderValue = HeaderValue::from_static("13");
/// What one keeps beside what its client has declared.
const CLIENT_BYTES: usize = 8 * 1024;

/// Answers a request for a WebSocket. Where it is granted, the connection becomes one when the answer is written.
pub(crate) fn upgrade(endpoint: &Arc<Endpoint>, who: Who, head: &Parts, arrival: Option<&Arrival>) -> Response<Body> {
    let accept = match asked(head) {
        Ok(accept) => accept,
        Err((status, why)) => return refused(endpoint, head, status, why),
    };
    let edge = &endpoint.edge;
    let busy = |reason, why| respond::refused(None, &Refusal::new(reason, why), Revision::NEWEST_LEGACY);
    if edge.tasks.is_ending() {
        return busy(Reason::Unavailable, "the gateway is shutting down; connect again in a moment");
    }
    let Ok(_kept) = edge.budget.owned_by(who.share().owner()).stand(CLIENT_BYTES) else {
        let why =
            "what this client keeps has its part of `server.memory_limit`; close some connections, or try again later";
        edge.refusals.turn_away("sessions", &why);
        return busy(Reason::Busy, why);
    };
    let Some(arrival) = arrival else {
        return respond::misused(StatusCode::NOT_IMPLEMENTED, "this connection cannot become a WebSocket");
    };
    let config = &endpoint.config;
    let (max, pause, keepalive) = (config.max_body, config.header_read_timeout, config.sse_keepalive);
    let terms = Terms { edge: edge.clone(), who, max, pause, keepalive, _kept };
    arrival.switch().to(Box::new(move |upgraded| Box::pin(serve(upgraded, terms))));
    let mut response = respond::empty(StatusCode::SWITCHING_PROTOCOLS);
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, UPGRADE);
    headers.insert(header::UPGRADE, PROTOCOL);
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    if names(&head.headers, &header::SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL) {
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(SUBPROTOCOL));
    }
    response
}

/// What proves to the client that its request was read as one for a WebSocket; else what is wrong with it.
fn asked(head: &Parts) -> Result<HeaderValue, (StatusCode, &'static str)> {
    let headers = &head.headers;
    if head.method != Method::GET {
        return Err((StatusCode::METHOD_NOT_ALLOWED, "a WebSocket is opened with GET"));
    }
    let is_asked = names(headers, &header::UPGRADE, "websocket") && names(headers, &header::CONNECTION, "upgrade");
    if !is_asked || head.version != Version::HTTP_11 {
        let why = "this address is for WebSocket over HTTP/1.1: `Connection: Upgrade`, `Upgrade: websocket`";
        return Err((StatusCode::UPGRADE_REQUIRED, why));
    }
    // Its bytes would be read as frames.
    let has_length = headers.get_all(header::CONTENT_LENGTH).iter().any(|length| length != "0");
    if has_length || headers.contains_key(header::TRANSFER_ENCODING) {
        return Err((StatusCode::BAD_REQUEST, "a request for a WebSocket has no body"));
    }
    if only(headers, &header::SEC_WEBSOCKET_VERSION) != Some(&VERSION) {
        return Err((StatusCode::UPGRADE_REQUIRED, "`Sec-WebSocket-Version` must be 13"));
    }
    let key = only(headers, &header::SEC_WEBSOCKET_KEY);
    let is_key = |key: &&HeaderValue| STANDARD.decode(key).is_ok_and(|key| key.len() == 16);
    let accept = key.filter(is_key).and_then(|key| websocket::accept(key.as_bytes()).parse().ok());
    accept.ok_or((StatusCode::BAD_REQUEST, "`Sec-WebSocket-Key` must be 16 bytes in base64, once"))
}

fn refused(endpoint: &Endpoint, head: &Parts, status: StatusCode, why: &str) -> Response<Body> {
    if head.method != Method::GET {
        return respond::no_method(why, "GET");
    }
    let why = match status {
        StatusCode::UPGRADE_REQUIRED => format!("{why}; Streamable HTTP is at {}", endpoint.config.path),
        _ => why.to_owned(),
    };
    let mut response = respond::misused(status, &why);
    if status == StatusCode::UPGRADE_REQUIRED {
        response.headers_mut().insert(header::UPGRADE, PROTOCOL);
        response.headers_mut().insert(header::SEC_WEBSOCKET_VERSION, VERSION);
    }
    respond::last(response)
}

/// Whether a header of words names this one, in any case.
fn names(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|text| text.split(',')).any(|one| one.trim().eq_ignore_ascii_case(word))
}

/// A header that stands once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a HeaderValue> {
    let mut values = headers.get_all(name).iter();
    values.next().filter(|_| values.next().is_none())
}
