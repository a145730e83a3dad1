//! What a POST waits for, and the response that it becomes: JSON, or a stream where that is not enough.

// JSON or a stream: decided late, when it is known what comes first.
mod decide;

use super::endpoint::Endpoint;
use super::respond;
use super::stream::{Body, CallFeed, ReplayFeed, Stream};
use crate::call::caller::credential::Revocation;
use crate::edge::Heads;
use crate::eras::Batch;
use crate::memory::account::Hold;
use crate::protocol::frame::Method;
use crate::protocol::framing::sse;
use crate::protocol::http::headers::MCP_SESSION_ID;
use crate::protocol::json;
use crate::protocol::revision::Revision;
use crate::response::EncodedResponse;
use crate::response::steps::{Lose, StepQueue, Turn};
use crate::running::{DetachedCall, RunningCall};
use crate::session::client::Session;
use crate::session::event_id;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use std::sync::Arc;
use std::task::{Context, Poll};

pub(super) use decide::{Deciding, silence_of};

/// How long a client should wait before it comes back for a stream, in milliseconds.
const RETRY_MS: u64 = 1000;

/// What a POST waits for.
pub(super) enum Work {
    /// A stateless client's call: dropped, it is cancelled.
    Modern(RunningCall),
    /// A session's call: dropped, it goes on.
    Legacy(Arc<Session>, DetachedCall<RunningCall>),
    /// A session's calls in one array; boxed, as it is large and rare.
    Batch(Arc<Session>, Box<DetachedCall<Batch>>),
    /// The opening of a session.
    Handshake(Arc<Session>, RunningCall),
}

impl Work {
    /// Whether the response may be a stream.
    pub(super) fn may_stream(&self, heads: &Heads<'_>) -> bool {
        match self {
            Self::Modern(running) if running.asked().method == Method::Listen => true,
            Self::Handshake(..) => false,
            _ => heads.takes_streams(),
        }
    }

    /// It can be ended for the memory that its request takes.
    pub(super) fn hold(&mut self, held: Option<Hold>) {
        match self {
            Self::Modern(running) | Self::Handshake(_, running) => running.hold(held),
            Self::Legacy(_, work) => {
                if let Some(running) = work.work() {
                    running.hold(held);
                }
            }
            Self::Batch(_, work) => {
                if let Some(batch) = work.work() {
                    batch.hold(held);
                }
            }
        }
    }

    /// The response, once it is known what comes first; `None` where nothing came in time. The map is empty, and bears the headers
    /// of a plain one. A stream ends with what its request was let in with.
    pub(super) fn respond(
        self,
        endpoint: &Endpoint,
        first: Option<Turn>,
        map: HeaderMap,
        revocation: &Revocation,
    ) -> Response<Body> {
        let event = match first {
            Some(Turn::End(answer)) => return self.answered(endpoint, answer, map),
            Some(Turn::Cancelled) => return respond::silence(),
            Some(Turn::Event(frame)) => Some(frame),
            None => None,
        };
        match self {
            Self::Modern(running) => {
                let (kind, revocation) = match running.asked().method == Method::Listen {
                    true => ("listen", revocation.clone()),
                    false => ("sse", revocation.without_its_time()),
                };
                let stream =
                    Stream::new(CallFeed::new(running, event), Vec::new(), endpoint.config.sse_keepalive, kind);
                respond::stream(stream.until(&revocation))
            }
            Self::Legacy(session, work) => lasting_stream(endpoint, &session, work, (event, revocation)),
            Self::Batch(session, work) => lasting_stream(endpoint, &session, *work, (event, revocation)),
            // It is waited for to its end.
            Self::Handshake(..) => respond::silence(),
        }
    }

    fn answered(self, endpoint: &Endpoint, answer: EncodedResponse, map: HeaderMap) -> Response<Body> {
        let opened = match self {
            Self::Handshake(session, _) if session.lasts => {
                Some((session, json::get(answer.frame.as_ref(), "result").is_some()))
            }
            _ => None,
        };
        let mut response = respond::answer(answer, map);
        if response.status() == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, endpoint.challenge());
        }
        if let Some((session, is_agreed)) = opened {
            if !is_agreed {
                // The client will not come back for it.
                endpoint.sessions.remove(&session.short);
            } else if let Ok(id) = HeaderValue::from_str(&session.id) {
                response.headers_mut().insert(MCP_SESSION_ID, id);
            }
        }
        response
    }
}

impl StepQueue for Work {
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Turn> {
        match self {
            Self::Modern(running) | Self::Handshake(_, running) => running.poll_turn(cx),
            Self::Legacy(_, work) => work.poll_turn(cx),
            Self::Batch(_, work) => work.poll_turn(cx),
        }
    }
}

/// A stream that goes on in a task, whoever reads it.
fn lasting_stream<T: Lose>(
    endpoint: &Endpoint,
    session: &Arc<Session>,
    work: DetachedCall<T>,
    (event, revocation): (Option<Vec<u8>>, &Revocation),
) -> Response<Body> {
    let replay = session.streams.open(&endpoint.edge.budget.owned_by(session.caller().share().owner()));
    let Some(reader) = replay.attach(0) else { return respond::silence() };
    event.into_iter().for_each(|frame| _ = replay.push(frame.into()));
    let head = stream_head(session, replay.number, 0);
    work.write_to(replay);
    let stream = Stream::new(ReplayFeed::new(session, reader), head, endpoint.config.sse_keepalive, "sse");
    respond::stream(stream.of_session(session, &revocation.without_its_time()))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::reply::Reply;

    /// The most bytes that a processor's own registers move in a few steps; more are copied by a call, and each room that hands them on
    /// makes one.
    const MOVED: usize = 128;

    #[test]
    fn what_each_room_hands_to_the_next_is_moved_without_a_call() {
        let sizes = [size_of::<Reply>(), size_of::<Work>(), size_of::<Deciding<Work>>()];
        assert!(sizes.iter().all(|size| *size <= MOVED), "{sizes:?}");
    }
}
