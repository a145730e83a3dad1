//! Handshake clients over HTTP: sessions by header, calls that outlive their connections.

use super::body::Body;
use super::decide::{first, last};
use super::endpoint::Endpoint;
use super::feeds::ReplayFeed;
use super::heads::{named, takes_streams, version};
use super::respond;
use super::stream::Stream;
use crate::call::{Reason, Refusal};
use crate::downstream::asked::Asked;
use crate::downstream::lasting::Lasting;
use crate::downstream::peer::{self, Who};
use crate::downstream::running::{Running, Turn, Turns};
use crate::downstream::session::Session;
use crate::downstream::streams::event_id;
use crate::downstream::{batch, handshake, legacy};
use crate::protocol::headers::MCP_SESSION_ID;
use crate::protocol::meta::Meta;
use crate::protocol::{Id, Method, Object, Revision, sse};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use std::sync::Arc;

/// How long a client should wait before it comes back for a stream, in milliseconds.
const RETRY_MS: u64 = 1000;

/// Answers `initialize`.
pub(super) async fn initialize(
    endpoint: &Arc<Endpoint>,
    who: Who,
    headers: &HeaderMap,
    (id, params, meta): (Id, Object, Meta),
) -> Response<Body> {
    let refuse = |refusal: Refusal| respond::refused(Some(&id), &refusal, Revision::NEWEST_LEGACY);
    // An id that the client made up is ignored; one of its own sessions means that it asks twice.
    if named(headers).is_some_and(|session| endpoint.sessions.find(session, &who.principal).is_some()) {
        return refuse(Refusal::new(Reason::InvalidRequest, "this session is initialized already"));
    }
    let Some(asks) = handshake::read(&params) else {
        return refuse(peer::invalid("`protocolVersion` must be a string"));
    };
    let session = if endpoint.config.session.required {
        match endpoint.sessions.create(who, asks.revision, &asks.capabilities) {
            Ok(session) => session,
            Err(_) => return refuse(full()),
        }
    } else {
        Arc::new(Session::single(who, asks.revision))
    };
    if session.lasts {
        session.notices.listen(&endpoint.edge, &session.caller, None);
    }
    let reply = handshake::answer(&endpoint.edge, &session.caller, meta.rest);
    let asked = Asked::handshake(id, asks.revision);
    let mut running = Running::new(&endpoint.edge, asked, reply, None);
    let Turn::End(answer) = last(&mut running).await else { return respond::silence() };
    let mut response = respond::answer(answer);
    if let Some(value) = HeaderValue::from_str(&session.id).ok().filter(|_| session.lasts) {
        response.headers_mut().insert(MCP_SESSION_ID, value);
    }
    response
}

/// Answers a request of a session.
pub(super) async fn request(
    endpoint: &Arc<Endpoint>,
    who: &Who,
    headers: &HeaderMap,
    request: (Id, Method, Object, Meta),
) -> Response<Body> {
    let session = match session(endpoint, who, headers) {
        Ok(session) => session,
        Err(refusal) => return respond::refused(Some(&request.0), &refusal, Revision::NEWEST_LEGACY),
    };
    let running = legacy::request(&endpoint.edge, &session, request);
    run(endpoint, &session, running, takes_streams(headers)).await
}

/// Takes a notification of a session.
pub(super) fn notification(
    endpoint: &Arc<Endpoint>,
    who: &Who,
    headers: &HeaderMap,
    (method, params, meta): (Method, Object, Meta),
) -> Response<Body> {
    match session(endpoint, who, headers) {
        Ok(session) => {
            legacy::notification(&endpoint.edge, &session, method, params, meta);
            respond::empty(StatusCode::ACCEPTED)
        }
        Err(refusal) => respond::refused(None, &refusal, Revision::NEWEST_LEGACY),
    }
}

/// Takes a response: nothing was asked, so it answers nothing.
pub(super) fn response(endpoint: &Arc<Endpoint>, who: &Who, headers: &HeaderMap) -> Response<Body> {
    match session(endpoint, who, headers) {
        Ok(session) => {
            session.touch();
            respond::empty(StatusCode::ACCEPTED)
        }
        Err(refusal) => respond::refused(None, &refusal, Revision::NEWEST_LEGACY),
    }
}

/// Answers an array of frames.
pub(super) async fn batch(endpoint: &Arc<Endpoint>, who: &Who, headers: &HeaderMap, text: &Bytes) -> Response<Body> {
    let refuse = |refusal: Refusal| respond::refused(None, &refusal, Revision::NEWEST_LEGACY);
    let session = match session(endpoint, who, headers) {
        Ok(session) => session,
        Err(refusal) => return refuse(refusal),
    };
    match batch::read(text, session.revision()).map(|sound| sound.begin(&endpoint.edge, &session)) {
        Ok(Some(batch)) => run(endpoint, &session, batch, takes_streams(headers)).await,
        Ok(None) => respond::empty(StatusCode::ACCEPTED),
        Err(refusal) => refuse(refusal),
    }
}

/// The session of a request: the one that it names; its own for one request, where none are issued.
pub(super) fn session(endpoint: &Endpoint, who: &Who, headers: &HeaderMap) -> Result<Arc<Session>, Refusal> {
    let revision = match version(headers) {
        None => Revision::HEADERLESS,
        Some(text) => Revision::parse(text).filter(|revision| !revision.is_modern()).ok_or_else(|| {
            let why = format!("the header `mcp-protocol-version` names a revision that has no sessions here: {text:?}");
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

/// The head of a stream for a revision that knows how to come back for one that was cut before its first message.
pub(super) fn stream_head(session: &Session, number: u64, after: u64) -> Vec<u8> {
    let mut head = Vec::new();
    if session.lasts && session.revision() >= Revision::V2025_11_25 {
        // Both in one event: some clients do not take an event that sets the delay alone.
        head.extend_from_slice(format!("retry: {RETRY_MS}\n").as_bytes());
        sse::encode_priming(&event_id(number, after), &mut head);
    }
    head
}

async fn run<T: Turns>(
    endpoint: &Arc<Endpoint>,
    session: &Arc<Session>,
    work: T,
    takes_streams: bool,
) -> Response<Body> {
    let mut work = Lasting::new(&endpoint.edge, work);
    let first = if takes_streams { first(&mut work).await } else { Some(last(&mut work).await) };
    let event = match first {
        Some(Turn::End(answer)) => return respond::answer(answer),
        Some(Turn::Cancelled) => return respond::silence(),
        Some(Turn::Event(frame)) => Some(frame),
        None => None,
    };
    let replay = session.streams.open();
    let Some(reader) = replay.attach(0) else { return respond::silence() };
    event.into_iter().for_each(|frame| replay.push(frame.into()));
    let head = stream_head(session, replay.number, 0);
    work.write_to(replay);
    respond::stream(Stream::new(ReplayFeed::new(session, reader), head, endpoint.config.sse_keepalive, "sse"))
}

fn full() -> Refusal {
    let why = "the gateway holds as many sessions as `server.session.max` allows, and none is idle; try again later";
    Refusal { is_retriable: true, ..Refusal::new(Reason::Busy, why) }
}
