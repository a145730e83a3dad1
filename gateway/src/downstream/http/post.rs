//! POST: one frame, or an array of them, sorted by era and kind.

use super::body::Body;
use super::endpoint::Endpoint;
use super::heads::{is_json, version};
use super::read::{self, Unread};
use super::{legacy, modern, respond};
use crate::call::{Reason, Refusal};
use crate::downstream::peer::{self, Who};
use crate::protocol::{Era, Frame, Id, Method, Object, Revision};
use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use std::sync::Arc;

/// Answers a POST.
pub(super) async fn post<B>(endpoint: &Arc<Endpoint>, who: Who, headers: &HeaderMap, body: B) -> Response<Body>
where
    B: http_body::Body<Data = Bytes, Error: Send> + Send + Unpin + 'static,
{
    if !is_json(headers) {
        return respond::misused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "`Content-Type` must be application/json");
    }
    let config = &endpoint.config;
    let text = match read::body(body, headers, config.max_body, config.header_read_timeout).await {
        Ok(text) => text,
        Err(unread) => return unread_response(&unread, config.max_body),
    };
    if Frame::is_batch(&text) {
        return legacy::batch(endpoint, &who, headers, &text).await;
    }
    match Frame::parse(&text) {
        Ok(Frame::Request { id, method, params }) => request(endpoint, who, headers, id, method, params).await,
        Ok(Frame::Notification { method, params }) => notification(endpoint, &who, headers, method, params),
        Ok(Frame::Response { .. }) => legacy::response(endpoint, &who, headers),
        Err(fault) => {
            let reason = if fault.is_json { Reason::InvalidRequest } else { Reason::Parse };
            respond::refused(fault.id.as_ref(), &Refusal::new(reason, fault.why), Revision::NEWEST_MODERN)
        }
    }
}

async fn request(
    endpoint: &Arc<Endpoint>,
    who: Who,
    headers: &HeaderMap,
    id: Id,
    method: Method,
    params: Object,
) -> Response<Body> {
    match peer::see(&method, &params, version(headers)) {
        Ok((Era::Modern, meta)) => modern::request(endpoint, &who, headers, (id, method, params, meta)).await,
        Ok((Era::Legacy, meta)) if method == Method::Initialize => {
            legacy::initialize(endpoint, who, headers, (id, params, meta)).await
        }
        Ok((Era::Legacy, meta)) => legacy::request(endpoint, &who, headers, (id, method, params, meta)).await,
        Err(refusal) => respond::refused(Some(&id), &refusal, Revision::NEWEST_MODERN),
    }
}

fn notification(
    endpoint: &Arc<Endpoint>,
    who: &Who,
    headers: &HeaderMap,
    method: Method,
    params: Object,
) -> Response<Body> {
    let taken = match peer::see(&method, &params, version(headers)) {
        Ok((Era::Modern, meta)) => modern::notification(endpoint, who, method, params, meta),
        Ok((Era::Legacy, meta)) => return legacy::notification(endpoint, who, headers, (method, params, meta)),
        Err(refusal) => Err(refusal),
    };
    match taken {
        Ok(()) => respond::empty(StatusCode::ACCEPTED),
        Err(refusal) => respond::refused(None, &refusal, Revision::NEWEST_MODERN),
    }
}

fn unread_response(unread: &Unread, max: usize) -> Response<Body> {
    match unread {
        Unread::TooLarge => {
            let why = format!("the body is longer than {max} bytes, the limit set by `server.max_body`");
            respond::misused(StatusCode::PAYLOAD_TOO_LARGE, &why)
        }
        Unread::TooSlow => respond::misused(StatusCode::REQUEST_TIMEOUT, "the body came too slowly"),
        Unread::Broken => respond::misused(StatusCode::BAD_REQUEST, "the body ended before its end"),
    }
}
