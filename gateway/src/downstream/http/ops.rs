//! GET and DELETE: a session's streams and its end.

use super::body::Body;
use super::endpoint::Endpoint;
use super::feeds::{NoticeFeed, ReplayFeed};
use super::heads::{named, version};
use super::legacy::session;
use super::respond;
use super::stream::Stream;
use super::work::stream_head;
use crate::call::{Reason, Refusal};
use crate::downstream::peer::{self, Who};
use crate::downstream::session::Session;
use crate::downstream::streams::parse_event_id;
use crate::protocol::Revision;
use crate::protocol::headers::LAST_EVENT_ID;
use http::{HeaderMap, Response, StatusCode};
use std::sync::Arc;

/// The number that event ids of the notices bear in place of a stream's.
const NOTICES: u64 = 0;

/// Opens the stream of a session's notices, or reads a call's stream on.
pub(super) fn get(endpoint: &Arc<Endpoint>, who: &Who, headers: &HeaderMap) -> Response<Body> {
    let session = match own(endpoint, who, headers) {
        Ok(session) => session,
        Err(response) => return *response,
    };
    session.touch();
    let period = endpoint.config.sse_keepalive;
    let seen = headers.get(LAST_EVENT_ID).map(|value| value.to_str().ok().and_then(parse_event_id));
    match seen {
        None | Some(Some((NOTICES, _))) => {
            let feed = NoticeFeed::new(&endpoint.edge, &session);
            let head = stream_head(&session, NOTICES, feed.reader());
            respond::stream(Stream::new(feed, head, period, "sse"))
        }
        Some(seen) => match seen.and_then(|seen| session.streams.resume(seen)) {
            Some(reader) => respond::stream(Stream::new(ReplayFeed::new(&session, reader), Vec::new(), period, "sse")),
            None => {
                let why = "what follows this event is not kept; what was not received is lost";
                respond::refused(None, &Refusal::new(Reason::Session, why), Revision::NEWEST_LEGACY)
            }
        },
    }
}

/// Ends a session.
pub(super) fn delete(endpoint: &Arc<Endpoint>, who: &Who, headers: &HeaderMap) -> Response<Body> {
    match own(endpoint, who, headers) {
        Ok(session) => {
            endpoint.sessions.remove(&session.id);
            respond::empty(StatusCode::OK)
        }
        Err(response) => *response,
    }
}

/// The session that a request is about.
fn own(endpoint: &Endpoint, who: &Who, headers: &HeaderMap) -> Result<Arc<Session>, Box<Response<Body>>> {
    if version(headers).is_some_and(peer::is_modern) {
        let why = "stateless revisions have neither GET nor DELETE";
        return Err(Box::new(respond::misused(StatusCode::METHOD_NOT_ALLOWED, why)));
    }
    if named(headers).is_none() {
        let why = "the header `mcp-session-id` is missing; POST `initialize` first";
        return Err(Box::new(respond::misused(StatusCode::BAD_REQUEST, why)));
    }
    session(endpoint, who, headers)
        .map_err(|refusal| Box::new(respond::refused(None, &refusal, Revision::NEWEST_LEGACY)))
}
