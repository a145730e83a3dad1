//! Handshake clients over HTTP: sessions by header, calls that outlive their connections.

use super::endpoint::Endpoint;
use super::heads::{named, takes_streams, version};
use super::work::Work;
use crate::call::{Reason, Refusal};
use crate::downstream::asked::Asked;
use crate::downstream::lasting::Lasting;
use crate::downstream::legacy::Stream;
use crate::downstream::peer::{self, Who};
use crate::downstream::running::Running;
use crate::downstream::session::Session;
use crate::downstream::{batch, dialect, handshake, legacy};
use crate::protocol::frame::Body;
use crate::protocol::meta::Meta;
use crate::protocol::{Id, Method, Object, Revision};
use bytes::Bytes;
use http::HeaderMap;
use std::sync::Arc;

/// Begins an `initialize`.
pub(super) fn initialize(
    endpoint: &Arc<Endpoint>,
    who: Who,
    headers: &HeaderMap,
    (id, params, meta): (Id, Object, Meta),
) -> Result<Work, Refusal> {
    // An id that the client made up is ignored; one of its own sessions means that it asks twice.
    if named(headers).is_some_and(|session| endpoint.sessions.find(session, &who.principal).is_some()) {
        return Err(Refusal::new(Reason::InvalidRequest, "this session is initialized already"));
    }
    let asks = handshake::read(&params).ok_or_else(|| peer::invalid("`protocolVersion` must be a string"))?;
    let (revision, is_dialect) = (asks.revision, asks.is_dialect);
    let session = if endpoint.config.session.required {
        endpoint.sessions.create(who, asks).map_err(|_| full())?
    } else {
        Arc::new(Session::single(who, revision))
    };
    if session.lasts {
        session.notices.listen(&endpoint.edge, &session.caller, None);
    }
    let reply = handshake::answer(&endpoint.edge, &session.caller, meta.rest);
    let asked = Asked::handshake(id, revision).in_dialect(is_dialect);
    let running = Running::new(&endpoint.edge, asked, reply, None);
    Ok(Work::Handshake(session, running))
}

/// Begins a request of a session.
pub(super) fn request(
    endpoint: &Arc<Endpoint>,
    who: &Who,
    headers: &HeaderMap,
    request: (Id, Method, Object, Meta),
) -> Result<Work, Refusal> {
    let session = session(endpoint, who, headers)?;
    if batch::is_method(&request.1) {
        return Ok(match batch::begin(&endpoint.edge, &session, stream(headers), (&request.0, &request.2)) {
            Ok(batch) => Work::Batch(session, Lasting::new(&endpoint.edge, batch)),
            Err(refusal) => {
                let asked = Asked::handshake(request.0, session.revision());
                let refused = Running::refused(&endpoint.edge, asked, refusal);
                Work::Legacy(session, Lasting::new(&endpoint.edge, refused))
            }
        });
    }
    let running = legacy::request(&endpoint.edge, &session, stream(headers), request);
    Ok(Work::Legacy(session, Lasting::new(&endpoint.edge, running)))
}

/// Takes a notification of a session.
pub(super) fn notification(
    endpoint: &Endpoint,
    who: &Who,
    headers: &HeaderMap,
    (method, params, meta): (Method, Object, Meta),
) -> Result<(), Refusal> {
    let session = session(endpoint, who, headers)?;
    legacy::notification(&endpoint.edge, &session, method, params, meta);
    Ok(())
}

/// Takes a response of a session.
pub(super) fn response(
    endpoint: &Endpoint,
    who: &Who,
    headers: &HeaderMap,
    (id, body): (Option<Id>, Body),
) -> Result<(), Refusal> {
    session(endpoint, who, headers).map(|session| legacy::response(&session, id.as_ref(), body))
}

/// Whether a request's client can be asked on its stream.
fn stream(headers: &HeaderMap) -> Stream {
    if takes_streams(headers) { Stream::Taken } else { Stream::Refused }
}

/// Begins an array of frames; `None` where nothing of it wants an answer.
pub(super) fn batch(
    endpoint: &Arc<Endpoint>,
    who: &Who,
    headers: &HeaderMap,
    text: &Bytes,
) -> Result<Option<Work>, Refusal> {
    let session = session(endpoint, who, headers)?;
    let batch = batch::read(text, session.revision())?.begin(&endpoint.edge, &session, stream(headers));
    Ok(batch.map(|batch| Work::Batch(session, Lasting::new(&endpoint.edge, batch))))
}

/// The session of a request: the one that it names; its own for one request, where none are issued.
pub(super) fn session(endpoint: &Endpoint, who: &Who, headers: &HeaderMap) -> Result<Arc<Session>, Refusal> {
    let revision = match version(headers) {
        None => Revision::HEADERLESS,
        Some(text) => Revision::parse(text)
            .or_else(|| dialect::of(text))
            .filter(|revision| !revision.is_modern())
            .ok_or_else(|| {
                let why =
                    format!("the header `mcp-protocol-version` names a revision that has no sessions here: {text:?}");
                Refusal::new(Reason::UnsupportedRevision(text.into()), why)
            })?,
    };
    match named(headers) {
        Some(id) => endpoint.sessions.find(id, &who.principal).ok_or_else(|| {
            Refusal::new(Reason::Session, "there is no such session, or it has ended; send `initialize` for a new one")
        }),
        None if endpoint.config.session.required => Err(Refusal::new(
            Reason::InvalidRequest,
            "the header `mcp-session-id` is missing; send `initialize` first, and then the id that it was answered with",
        )),
        None => Ok(Arc::new(Session::single(who.clone(), revision))),
    }
}

fn full() -> Refusal {
    let why = "the gateway holds as many sessions as `server.session.max` allows, and none is idle; try again later";
    Refusal { is_retriable: true, ..Refusal::new(Reason::Busy, why) }
}
