//! POST: one frame, or an array of them, sorted by era and kind.

use super::body::Body;
use super::decide::{first, last};
use super::endpoint::Endpoint;
use super::heads::{is_json, version};
use super::read::{self, Unread};
use super::work::Work;
use super::{legacy, modern, respond};
use crate::call::{Reason, Refusal};
use crate::downstream::batch;
use crate::downstream::peer::{self, Who};
use crate::protocol::{Era, Frame, Id, Method, Object, Revision, frame};
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
    // Whatever is read and begun is so without waiting; all that waits is in the work.
    let mut work = match begin(endpoint, who, headers, text) {
        Ok(work) => work,
        Err(answered) => return *answered,
    };
    let first = if work.may_stream(headers) { first(&mut work).await } else { Some(last(&mut work).await) };
    work.respond(endpoint, first)
}

/// What is to be waited for; else what there is to say at once.
type Begun = Result<Work, Box<Response<Body>>>;

fn begin(endpoint: &Arc<Endpoint>, who: Who, headers: &HeaderMap, text: Bytes) -> Begun {
    if Frame::is_batch(&text) {
        if let Err(refusal) = batch::belongs(&text, version(headers)) {
            return refuse(None, &refusal, Era::Modern);
        }
        return match legacy::batch(endpoint, &who, headers, &text) {
            Ok(Some(batch)) => Ok(batch),
            Ok(None) => Err(Box::new(respond::empty(StatusCode::ACCEPTED))),
            Err(refusal) => refuse(None, &refusal, Era::Legacy),
        };
    }
    let answered = match Frame::parse(&text) {
        Ok(Frame::Request { id, method, params }) => return request(endpoint, who, headers, id, method, params),
        Ok(Frame::Notification { method, params }) => notification(endpoint, &who, headers, method, params),
        Ok(Frame::Response { id, body: frame::Body::Neither }) => {
            // Where it was meant to answer a question, nothing better will come.
            let _unasked = legacy::response(endpoint, &who, headers, (id.clone(), frame::Body::Neither));
            return refuse(id.as_ref(), &peer::meaningless(), Era::Modern);
        }
        Ok(Frame::Response { id, body }) => {
            legacy::response(endpoint, &who, headers, (id, body)).map_err(|refusal| (refusal, Era::Legacy))
        }
        Err(fault) => {
            let reason = if fault.is_json { Reason::InvalidRequest } else { Reason::Parse };
            return refuse(fault.id.as_ref(), &Refusal::new(reason, fault.why), Era::Modern);
        }
    };
    match answered {
        Ok(()) => Err(Box::new(respond::empty(StatusCode::ACCEPTED))),
        Err((refusal, era)) => refuse(None, &refusal, era),
    }
}

fn request(endpoint: &Arc<Endpoint>, who: Who, headers: &HeaderMap, id: Id, method: Method, params: Object) -> Begun {
    let (era, meta) = match peer::see(&method, &params, version(headers)) {
        Ok(seen) => seen,
        Err(refusal) => return refuse(Some(&id), &refusal, Era::Modern),
    };
    let echo = id.clone();
    let work = match era {
        Era::Modern => modern::request(endpoint, &who, headers, (id, method, params, meta)),
        Era::Legacy if method == Method::Initialize => legacy::initialize(endpoint, who, headers, (id, params, meta)),
        Era::Legacy => legacy::request(endpoint, &who, headers, (id, method, params, meta)),
    };
    work.or_else(|refusal| refuse(Some(&echo), &refusal, era))
}

fn notification(
    endpoint: &Arc<Endpoint>,
    who: &Who,
    headers: &HeaderMap,
    method: Method,
    params: Object,
) -> Result<(), (Refusal, Era)> {
    let (era, meta) = peer::see(&method, &params, version(headers)).map_err(|refusal| (refusal, Era::Modern))?;
    let taken = match era {
        Era::Modern => modern::notification(endpoint, who, method, params, meta),
        Era::Legacy => legacy::notification(endpoint, who, headers, (method, params, meta)),
    };
    taken.map_err(|refusal| (refusal, era))
}

fn refuse(id: Option<&Id>, refusal: &Refusal, era: Era) -> Begun {
    let revision = if era == Era::Modern { Revision::NEWEST_MODERN } else { Revision::NEWEST_LEGACY };
    Err(Box::new(respond::refused(id, refusal, revision)))
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
