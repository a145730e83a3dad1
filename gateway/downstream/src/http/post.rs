//! POST: one frame, or an array of them, sorted by era and kind.

use super::endpoint::Endpoint;
use super::read::Unread;
use super::stream::Body;
use super::work::{Deciding, Work, silence_of};
use super::{legacy, modern, respond};
use crate::call::refusal::{Reason, Refusal};
use crate::edge::client_era::Who;
use crate::edge::{Heads, client_era};
use crate::eras::batch;
use crate::memory::account::Hold;
use crate::metrics::messages;
use crate::protocol::frame;
use crate::protocol::frame::Method;
use crate::protocol::frame::message::{Frame, Id};
use crate::protocol::revision::{Era, Revision};
use crate::protocol::value::Object;
use crate::protocol::value::spelling::Spots;
use crate::runtime::aside;
use bytes::Bytes;
use http::{Response, StatusCode};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

/// What a POST with this body waits for; else what there is to say at once.
pub(super) fn begin(
    endpoint: &Arc<Endpoint>,
    who: Who,
    heads: &Heads<'_>,
    read: Result<(Bytes, Option<Hold>), Unread>,
) -> Begun {
    let (text, held) = match read {
        Ok(read) => read,
        Err(unread) => return Err(Box::new(self::unread(endpoint, &unread))),
    };
    // Whatever is read and begun is so without waiting; all that waits is in the work.
    let mut work = taken(endpoint, who, heads, text)?;
    work.hold(held);
    let may_stream = work.may_stream(heads);
    Ok(Deciding::new(work, may_stream, silence_of(endpoint.config.sse_keepalive)))
}

/// What is answered where a body was not read.
pub(super) fn unread(endpoint: &Endpoint, unread: &Unread) -> Response<Body> {
    match unread {
        Unread::NoRoom(_) => endpoint.edge.refusals.turn_away("memory", &"a body was dropped"),
        Unread::TooMany => endpoint.edge.refusals.turn_away("bodies", &"one client sends its part of them"),
        Unread::TooLarge | Unread::TooSlow | Unread::Broken => {}
    }
    unread_response(unread, endpoint.config.max_body)
}

/// Reads a body. One that is not there at once has a place among those that are waited for, of which no client has all.
pub(super) async fn unless_too_many<T>(
    endpoint: &Endpoint,
    who: &Who,
    reading: impl Future<Output = Result<T, Unread>>,
) -> Result<T, Unread> {
    let mut reading = pin!(reading);
    match poll_fn(|cx| Poll::Ready(reading.as_mut().poll(cx))).await {
        Poll::Ready(read) => read,
        Poll::Pending => match endpoint.bodies.take(&who.share()) {
            Some(_place) => reading.await,
            None => Err(Unread::TooMany),
        },
    }
}

/// What is to be waited for; else what there is to say at once.
pub(super) type Begun = Result<Deciding<Work>, Box<Response<Body>>>;
type Taken = Result<Work, Box<Response<Body>>>;

fn taken(endpoint: &Arc<Endpoint>, who: Who, heads: &Heads<'_>, text: Bytes) -> Taken {
    if Frame::is_batch(&text) {
        let read = batch::Frames::read(&text);
        let frames = match read.and_then(|frames| frames.belongs(heads.version()).map(|()| frames)) {
            Ok(frames) => frames,
            Err(refusal) => return refuse(None, &refusal, Era::Modern),
        };
        return match legacy::batch(endpoint, &who, heads, frames) {
            Ok(Some(batch)) => Ok(batch),
            Ok(None) => Err(Box::new(respond::empty(StatusCode::ACCEPTED))),
            Err(refusal) => refuse(None, &refusal, Era::Legacy),
        };
    }
    let mut noted = Spots::default();
    let read = aside(text.len(), || Frame::noting(&text, &mut noted));
    let answered = match read.inspect(|_| messages::CLIENT.received()) {
        Ok(Frame::Request { id, method, params }) => {
            return request(endpoint, who, heads, (id, method, params, &noted));
        }
        Ok(Frame::Notification { method, params }) => notification(endpoint, &who, heads, (method, params, &noted)),
        Ok(Frame::Response { id, body: frame::message::Body::Neither }) => {
            // Where it was meant to answer a question, nothing better will come.
            let _unasked = legacy::response(endpoint, &who, heads, (id.clone(), frame::message::Body::Neither));
            return refuse(id.as_ref(), &client_era::meaningless(), Era::Modern);
        }
        Ok(Frame::Response { id, body }) => {
            legacy::response(endpoint, &who, heads, (id, body)).map_err(|refusal| (refusal, Era::Legacy))
        }
        Err(fault) => {
            let id = fault.id.clone();
            return refuse(id.as_ref(), &client_era::unread(fault), Era::Modern);
        }
    };
    match answered {
        Ok(()) => Err(Box::new(respond::empty(StatusCode::ACCEPTED))),
        Err((refusal, era)) => refuse(None, &refusal, era),
    }
}

fn request(
    endpoint: &Arc<Endpoint>,
    who: Who,
    heads: &Heads<'_>,
    (id, method, params, noted): (Id, Method, Object, &Spots),
) -> Taken {
    let (era, mut meta) = match client_era::see(&method, (&params, noted), heads.version()) {
        Ok(seen) => seen,
        Err(refusal) => return refuse(Some(&id), &refusal, Era::Modern),
    };
    meta.ambient = heads.trace();
    let echo = id.clone();
    let work = match era {
        Era::Modern => modern::request(endpoint, who, heads, (id, method, params, meta)),
        Era::Legacy if method == Method::Initialize => legacy::initialize(endpoint, who, heads, (id, params, meta)),
        Era::Legacy => legacy::request(endpoint, &who, heads, (id, method, params, meta)),
    };
    work.or_else(|refusal| refuse(Some(&echo), &refusal, era))
}

fn notification(
    endpoint: &Arc<Endpoint>,
    who: &Who,
    heads: &Heads<'_>,
    (method, params, noted): (Method, Object, &Spots),
) -> Result<(), (Refusal, Era)> {
    let seen = client_era::see(&method, (&params, noted), heads.version());
    let (era, mut meta) = seen.map_err(|refusal| (refusal, Era::Modern))?;
    meta.ambient = heads.trace();
    let taken = match era {
        Era::Modern => modern::notification(endpoint, who, method, params, meta),
        Era::Legacy => legacy::notification(endpoint, who, heads, (method, params, meta)),
    };
    taken.map_err(|refusal| (refusal, era))
}

fn refuse(id: Option<&Id>, refusal: &Refusal, era: Era) -> Taken {
    let revision = if era == Era::Modern { Revision::NEWEST_MODERN } else { Revision::NEWEST_LEGACY };
    Err(Box::new(respond::refused(id, refusal, revision)))
}

fn unread_response(unread: &Unread, max: usize) -> Response<Body> {
    respond::last(match unread {
        Unread::TooLarge => {
            let why = format!("the body is longer than {max} bytes, the limit set by `server.max_body`");
            respond::misused(StatusCode::PAYLOAD_TOO_LARGE, &why)
        }
        Unread::TooSlow => respond::misused(StatusCode::REQUEST_TIMEOUT, "the body came too slowly"),
        Unread::NoRoom(spent) => {
            let why = format!("the body was dropped: {spent}; try again later, or with less");
            let refusal = Refusal::new(Reason::Busy, why);
            respond::refused(None, &refusal, Revision::NEWEST_LEGACY)
        }
        Unread::TooMany => {
            let why = "this client has its share of the bodies that are being received; send fewer at a time";
            let refusal = Refusal::new(Reason::Busy, why);
            respond::refused(None, &refusal, Revision::NEWEST_LEGACY)
        }
        Unread::Broken => respond::misused(StatusCode::BAD_REQUEST, "the body ended before its end"),
    })
}
