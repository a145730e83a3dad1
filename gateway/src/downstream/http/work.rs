//! What a POST waits for, and the response that it becomes: JSON, or a stream where that is not enough.

use super::body::Body;
use super::endpoint::Endpoint;
use super::feeds::{CallFeed, ReplayFeed};
use super::heads::takes_streams;
use super::respond;
use super::stream::Stream;
use crate::downstream::asked::Answer;
use crate::downstream::batch::Batch;
use crate::downstream::lasting::Lasting;
use crate::downstream::running::Running;
use crate::downstream::session::Session;
use crate::downstream::streams::event_id;
use crate::downstream::turns::{Turn, Turns};
use crate::protocol::headers::MCP_SESSION_ID;
use crate::protocol::{Method, Revision, json, sse};
use http::{HeaderMap, HeaderValue, Response};
use std::sync::Arc;
use std::task::{Context, Poll};

/// How long a client should wait before it comes back for a stream, in milliseconds.
const RETRY_MS: u64 = 1000;

/// What a POST waits for.
pub(super) enum Work {
    /// A stateless client's call: dropped, it is cancelled.
    Modern(Running),
    /// A session's call: dropped, it goes on.
    Legacy(Arc<Session>, Lasting<Running>),
    /// A session's calls in one array.
    Batch(Arc<Session>, Lasting<Batch>),
    /// The opening of a session.
    Handshake(Arc<Session>, Running),
}

impl Work {
    /// Whether the response may be a stream.
    pub(super) fn may_stream(&self, headers: &HeaderMap) -> bool {
        match self {
            Self::Modern(running) if running.asked.method == Method::Listen => true,
            Self::Handshake(..) => false,
            _ => takes_streams(headers),
        }
    }

    /// The response, once it is known what comes first; `None` where nothing came in time.
    pub(super) fn respond(self, endpoint: &Endpoint, first: Option<Turn>) -> Response<Body> {
        let event = match first {
            Some(Turn::End(answer)) => return self.answered(endpoint, answer),
            Some(Turn::Cancelled) => return respond::silence(),
            Some(Turn::Event(frame)) => Some(frame),
            None => None,
        };
        match self {
            Self::Modern(running) => {
                let kind = if running.asked.method == Method::Listen { "listen" } else { "sse" };
                let feed = CallFeed::new(running, event);
                respond::stream(Stream::new(feed, Vec::new(), endpoint.config.sse_keepalive, kind))
            }
            Self::Legacy(session, work) => lasting_stream(endpoint, &session, work, event),
            Self::Batch(session, work) => lasting_stream(endpoint, &session, work, event),
            // It is waited for to its end.
            Self::Handshake(..) => respond::silence(),
        }
    }

    fn answered(self, endpoint: &Endpoint, answer: Answer) -> Response<Body> {
        let opened = match self {
            Self::Handshake(session, _) if session.lasts => {
                Some((session, json::get(&answer.frame, "result").is_some()))
            }
            _ => None,
        };
        let mut response = respond::answer(answer);
        if let Some((session, is_agreed)) = opened {
            if !is_agreed {
                // The client will not come back for it.
                endpoint.sessions.remove(&session.id);
            } else if let Ok(id) = HeaderValue::from_str(&session.id) {
                response.headers_mut().insert(MCP_SESSION_ID, id);
            }
        }
        response
    }
}

impl Turns for Work {
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Turn> {
        match self {
            Self::Modern(running) | Self::Handshake(_, running) => running.poll_turn(cx),
            Self::Legacy(_, work) => work.poll_turn(cx),
            Self::Batch(_, work) => work.poll_turn(cx),
        }
    }
}

/// A stream that goes on in a task, whoever reads it.
fn lasting_stream<T: Turns>(
    endpoint: &Endpoint,
    session: &Arc<Session>,
    work: Lasting<T>,
    event: Option<Vec<u8>>,
) -> Response<Body> {
    let replay = session.streams.open();
    let Some(reader) = replay.attach(0) else { return respond::silence() };
    event.into_iter().for_each(|frame| replay.push(frame.into()));
    let head = stream_head(session, replay.number, 0);
    work.write_to(replay);
    respond::stream(Stream::new(ReplayFeed::new(session, reader), head, endpoint.config.sse_keepalive, "sse"))
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
