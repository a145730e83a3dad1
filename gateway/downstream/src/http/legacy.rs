//! Handshake clients over HTTP: sessions by header, calls that outlive their connections.

use super::endpoint::Endpoint;
use super::work::Work;
use crate::call::refusal::{Reason, Refusal};
use crate::edge::client_era::Who;
use crate::edge::{Heads, client_era, handshake};
use crate::eras::{Stream, batch, legacy};
use crate::protocol::frame::Method;
use crate::protocol::frame::message::{Body, Id};
use crate::protocol::meta::Meta;
use crate::protocol::revision::Revision;
use crate::protocol::value::Object;
use crate::response::ResponseEncoder;
use crate::response::dialect_2024_10_07;
use crate::running::{DetachedCall, RunningCall};
use crate::runtime::complaints::left_unsaid;
use crate::session::Subscribing;
use crate::session::client::Requester;
use crate::session::client::Session;
use crate::session::table::Full;
use std::sync::Arc;

/// Begins an `initialize`.
pub(super) fn initialize(
    endpoint: &Arc<Endpoint>,
    who: Who,
    heads: &Heads<'_>,
    (id, params, meta): (Id, Object, Meta),
) -> Result<Work, Refusal> {
    // An id that the client made up is ignored; one of its own sessions means that it asks twice.
    if heads.named().is_some_and(|session| endpoint.sessions.find(session, &who.principal).is_some()) {
        return Err(Refusal::new(Reason::InvalidRequest, "this session is initialized already"));
    }
    let asks = handshake::read(&params)?;
    let (revision, is_dialect) = (asks.revision, asks.is_dialect);
    let session = if endpoint.config.session.required {
        endpoint.sessions.create(who, asks).map_err(|full| crowded(endpoint, &full))?
    } else {
        Arc::new(Session::single(who, revision, &endpoint.edge.budget))
    };
    if session.lasts {
        session.notices.listen(&endpoint.edge, &session.caller(), None);
    }
    let reply = handshake::answer(&endpoint.edge, &session.caller(), meta);
    let asked = ResponseEncoder::handshake(id, revision).in_dialect(is_dialect);
    let running = RunningCall::new(&endpoint.edge, asked, reply, None);
    Ok(Work::Handshake(session, running))
}

/// Begins a request of a session.
pub(super) fn request(
    endpoint: &Arc<Endpoint>,
    who: &Who,
    heads: &Heads<'_>,
    request: (Id, Method, Object, Meta),
) -> Result<Work, Refusal> {
    let requester = requester(endpoint, who, heads)?;
    if batch::is_method(&request.1) {
        let begun = batch::begin(&endpoint.edge, &requester, stream(heads), (&request.0, &request.2));
        return Ok(match begun {
            Ok(batch) => batched(endpoint, requester.session, batch),
            Err(refusal) => {
                let asked = ResponseEncoder::handshake(request.0, requester.session.revision());
                let refused = RunningCall::refused(&endpoint.edge, asked, refusal);
                detached(endpoint, requester.session, refused)
            }
        });
    }
    let running = legacy::request(&endpoint.edge, &requester, stream(heads), request);
    Ok(detached(endpoint, requester.session, running))
}

fn detached(endpoint: &Endpoint, session: Arc<Session>, running: RunningCall) -> Work {
    let work = DetachedCall::new(&endpoint.edge, session.caller().share(), running);
    Work::Legacy(session, work)
}

fn batched(endpoint: &Endpoint, session: Arc<Session>, batch: batch::Batch) -> Work {
    let work = DetachedCall::new(&endpoint.edge, session.caller().share(), batch);
    Work::Batch(session, Box::new(work))
}

/// Takes a notification of a session.
pub(super) fn notification(
    endpoint: &Endpoint,
    who: &Who,
    heads: &Heads<'_>,
    (method, params, meta): (Method, Object, Meta),
) -> Result<(), Refusal> {
    let requester = requester(endpoint, who, heads)?;
    legacy::notification(&endpoint.edge, &requester, method, params, meta);
    Ok(())
}

/// Takes a response of a session.
pub(super) fn response(
    endpoint: &Endpoint,
    who: &Who,
    heads: &Heads<'_>,
    (id, body): (Option<Id>, Body),
) -> Result<(), Refusal> {
    session(endpoint, who, heads).and_then(|session| legacy::response(&session, id.as_ref(), body))
}

/// Whether a request's client can be asked on its stream.
fn stream(heads: &Heads<'_>) -> Stream {
    if heads.takes_streams() { Stream::Taken } else { Stream::Refused }
}

/// Begins an array of frames; `None` where nothing of it wants an answer.
pub(super) fn batch(
    endpoint: &Arc<Endpoint>,
    who: &Who,
    heads: &Heads<'_>,
    frames: batch::Frames,
) -> Result<Option<Work>, Refusal> {
    let requester = requester(endpoint, who, heads)?;
    let array = frames.judge(requester.session.revision())?.caused_by(heads.trace().as_deref());
    let array = array.deliver_responses(&requester.session);
    let batch = batch::Batch::of_array(&endpoint.edge, &requester, stream(heads), array);
    Ok(batch.map(|batch| batched(endpoint, requester.session, batch)))
}

/// The session of a request, which has the rights of the request from now on.
pub(super) fn session(endpoint: &Endpoint, who: &Who, heads: &Heads<'_>) -> Result<Arc<Session>, Refusal> {
    requester(endpoint, who, heads).map(|requester| requester.session)
}

/// The session of a request with the rights of that: the one that it names; its own for one request, where none are issued.
fn requester(endpoint: &Endpoint, who: &Who, heads: &Heads<'_>) -> Result<Requester, Refusal> {
    let revision = match heads.version() {
        None => Revision::HEADERLESS,
        Some(text) => Revision::parse(text)
            .or_else(|| dialect_2024_10_07::of(text))
            .filter(|revision| !revision.is_modern())
            .ok_or_else(|| {
                let shown = client_era::shown(text);
                let why =
                    format!("the header `mcp-protocol-version` names a revision that has no sessions here: {shown:?}");
                Refusal::new(Reason::UnsupportedRevision(shown.into()), why)
            })?,
    };
    match heads.named() {
        Some(id) => {
            let session = endpoint.sessions.find(id, &who.principal);
            let session = session.map_or_else(|| revived(endpoint, who, id), Ok)?;
            Ok(session.requester_with(who))
        }
        None if endpoint.config.session.required => Err(Refusal::new(
            Reason::InvalidRequest,
            "the header `mcp-session-id` is missing; send `initialize` first, then the session id of its answer",
        )),
        None => Ok(Arc::new(Session::single(who.clone(), revision, &endpoint.edge.budget)).requester()),
    }
}

/// The session of an id that is not known here, where the id says that an earlier run, or another gateway with the same key, has opened
/// it for this principal.
fn revived(endpoint: &Endpoint, who: &Who, id: &str) -> Result<Arc<Session>, Refusal> {
    let (edge, sessions) = (&endpoint.edge, &endpoint.sessions);
    let found = match endpoint.config.session.required {
        true => sessions.revive(id, who).map_err(|full| crowded(endpoint, &full))?,
        false => None,
    };
    let Some((session, is_first)) = found else {
        let why = "unknown session, or one that has ended; send `initialize` for a new one";
        return Err(Refusal::new(Reason::Session, why));
    };
    if is_first {
        let lost = match session.caller().tenant.as_ref().and_then(|tenant| tenant.wished_before()) {
            Some(true) => "",
            Some(false) => "; no subscriptions and no log level were kept for it",
            None if !session.notices.awaited().is_empty() => "; some of its subscriptions are lost",
            None => "; its subscriptions and its log level are lost",
        };
        edge.tasks.spawn_until_end(Subscribing::all_again(&session, edge));
        session.notices.missed(handshake::lists(edge, &session.caller()));
        if let Some(more) = endpoint.said.take("revived") {
            let (caller, more) = (session.caller(), left_unsaid(more));
            let principal = caller.principal.name();
            tracing::info!(principal, more, "session of an earlier run revived{lost}");
        }
    }
    Ok(session)
}

/// The refusal of a session that finds no room.
fn crowded(endpoint: &Endpoint, full: &Full) -> Refusal {
    let refusal = refused(full);
    endpoint.edge.refusals.turn_away("sessions", &refusal);
    refusal
}

fn refused(full: &Full) -> Refusal {
    let Full { share, own, all, is_of_memory } = full;
    if *is_of_memory && *own == 0 {
        let why = format!(
            "the memory that sessions may keep (a part of `server.memory_limit`) is taken by {all} sessions of other clients, none of \
             which has many more than {share}; try again later"
        );
        return Refusal::new(Reason::Busy, why);
    }
    if *is_of_memory {
        let why = format!(
            "{own} sessions are of {share}, and with what else waits for it they keep as much as is its part of `server.memory_limit`; \
             end some (DELETE), or declare and subscribe to less"
        );
        return Refusal::new(Reason::Busy, why);
    }
    let why = format!(
        "{all} sessions are open, as many as `server.session.max` allows; {own} of them are of {share}, each of which has a call or \
         a stream open or was used within the last minute, and nobody else has many more; end some (DELETE), or try again later"
    );
    Refusal::new(Reason::Busy, why)
}
