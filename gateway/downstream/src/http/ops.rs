//! GET and DELETE: a session's streams and its end.

use super::endpoint::Endpoint;
use super::legacy::session;
use super::respond;
use super::stream::{Body, NoticeFeed, ReplayFeed, Stream};
use super::work::stream_head;
use crate::call::refusal::{Reason, Refusal};
use crate::edge::client_era::Who;
use crate::edge::{Heads, client_era};
use crate::protocol::revision::Revision;
use crate::session::client::Session;
use crate::session::parse_event_id;
use http::{Response, StatusCode};
use std::sync::Arc;

/// The number that event ids of the notices bear in place of a stream's.
const NOTICES: u64 = 0;

/// Opens the stream of a session's notices, or reads a call's stream on.
pub(super) fn get(endpoint: &Arc<Endpoint>, who: &Who, heads: &Heads<'_>) -> Response<Body> {
    let session = match reads_events(heads).and_then(|()| own(endpoint, who, heads)) {
        Ok(session) => session,
        Err(response) => return *response,
    };
    session.touch();
    let period = endpoint.config.sse_keepalive;
    let seen = heads.last_event().map(|value| value.to_str().ok().and_then(parse_event_id));
    match seen {
        None | Some(Some((NOTICES, _))) => {
            let feed = NoticeFeed::new(&endpoint.edge, &session);
            let head = stream_head(&session, NOTICES, feed.reader());
            respond::stream(Stream::new(feed, head, period, "sse").of_session(&session, &who.revocation))
        }
        Some(seen) => match seen.and_then(|seen| session.streams.resume(seen)) {
            Some(reader) => {
                let stream = Stream::new(ReplayFeed::new(&session, reader), Vec::new(), period, "sse");
                respond::stream(stream.of_session(&session, &who.revocation))
            }
            None => {
                let why = "what follows this event is not kept; what was not received is lost";
                respond::refused(None, &Refusal::new(Reason::Session, why), Revision::NEWEST_LEGACY)
            }
        },
    }
}

/// Ends a session.
pub(super) fn delete(endpoint: &Arc<Endpoint>, who: &Who, heads: &Heads<'_>) -> Response<Body> {
    match own(endpoint, who, heads) {
        Ok(session) => {
            endpoint.sessions.end(&session);
            respond::empty(StatusCode::OK)
        }
        Err(response) => *response,
    }
}

/// A GET is answered with a stream of events or not at all, so its client must name them as what it reads.
fn reads_events(heads: &Heads<'_>) -> Result<(), Box<Response<Body>>> {
    has_streams(heads)?;
    if !heads.names_events() {
        let why = "`Accept` must name text/event-stream";
        return Err(Box::new(respond::misused(StatusCode::NOT_ACCEPTABLE, why)));
    }
    Ok(())
}

/// Whether the client may be of a revision that has sessions.
fn has_streams(heads: &Heads<'_>) -> Result<(), Box<Response<Body>>> {
    if heads.version().is_some_and(client_era::is_modern) {
        let why = "stateless revisions have neither GET nor DELETE";
        return Err(Box::new(respond::misused(StatusCode::METHOD_NOT_ALLOWED, why)));
    }
    Ok(())
}

/// The session that a request is about.
fn own(endpoint: &Endpoint, who: &Who, heads: &Heads<'_>) -> Result<Arc<Session>, Box<Response<Body>>> {
    has_streams(heads)?;
    if heads.named().is_none() {
        let why = "the header `mcp-session-id` is missing; POST `initialize` first";
        return Err(Box::new(respond::misused(StatusCode::BAD_REQUEST, why)));
    }
    session(endpoint, who, heads).map_err(|refusal| Box::new(respond::refused(None, &refusal, Revision::NEWEST_LEGACY)))
}
