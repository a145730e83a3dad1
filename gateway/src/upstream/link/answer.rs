//! How one POST is answered: a JSON body, a stream, or a refusal.

use super::http::Http;
use super::pool::{Held, causes};
use super::refused::{self, Refused};
use super::slot::{Arrival, Lost, Slot};
use super::stream::{self, Reading};
use crate::protocol::frame::{Body, Frame};
use crate::protocol::headers;
use bytes::{Bytes, BytesMut};
use http::header::CONTENT_TYPE;
use http::{Request, Response};
use http_body::Body as _;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use std::sync::Arc;

/// What was asked, as far as its answer is judged by it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    /// Our id of it.
    pub(super) id: u64,
    /// Whether it asks who the upstream is: then a status says more than a body.
    pub(super) is_meeting: bool,
    /// Whether its answer opens a session.
    pub(super) opens: bool,
}

/// Sends a request and brings all that comes back to its slot.
pub(super) async fn drive(http: Arc<Http>, request: Request<Full<Bytes>>, asked: Asked, slot: Arc<Slot>) {
    let end = match run(&http, request, asked, &slot).await {
        Ok(body) => Arrival::Response(body),
        Err(lost) => Arrival::Lost(lost),
    };
    slot.finish(end);
}

async fn run(http: &Arc<Http>, request: Request<Full<Bytes>>, asked: Asked, slot: &Arc<Slot>) -> Result<Body, Lost> {
    let (response, held) = http.wire.pool.send(request, || slot.enqueued_at(0)).await?;
    let session = response.headers().get(headers::MCP_SESSION_ID);
    if let Some(id) = session.filter(|_| asked.opens && response.status().is_success()) {
        http.open_session(id);
    }
    if !response.status().is_success() {
        return match refused::read(response, http.has_session()).await {
            Refused::Error(raw, status) if !(asked.is_meeting && refused::says_nothing(status)) => Ok(Body::Error(raw)),
            Refused::Error(raw, status) => Err(refused::status_of(raw, status)),
            // A stateless upstream has no sessions, and while meeting there is none yet.
            Refused::Session(text) if !http.is_modern() && !asked.is_meeting => Err(Lost::Session(text)),
            Refused::Session(text) => Err(refused::plain(404, text)),
            Refused::Status(refusal) => Err(Lost::Status(refusal)),
        };
    }
    if is_stream(&response) {
        let reading = Reading { http, id: asked.id, slot };
        return stream::answer(&reading, response.into_body(), held).await;
    }
    let kind = response.headers().get(CONTENT_TYPE).map(|kind| String::from_utf8_lossy(kind.as_bytes()).into_owned());
    let status = response.status().as_u16();
    let text = collect(response.into_body(), http.wire.max).await?;
    http.wire.pool.put(held);
    if text.is_empty() {
        return Err(Lost::Odd(format!("HTTP {status} without an answer").into()));
    }
    one(&text, asked.id, &|frame| stream::beside(http, slot, asked.id, frame)).ok_or_else(|| {
        let kind = kind.unwrap_or_else(|| "no content type".into());
        Lost::Odd(format!("HTTP {status} with {kind}, and no answer to the request in it").into())
    })
}

/// Sends what wants no answer.
pub(super) async fn told(http: &Arc<Http>, request: Request<Full<Bytes>>) -> Result<(), Lost> {
    let (response, held) = http.wire.pool.send(request, || ()).await?;
    if response.status().is_success() {
        // Whatever a body says here means nothing; a small one is read so that the connection can be used again.
        if response.body().is_end_stream() || collect(response.into_body(), 64 * 1024).await.is_ok() {
            http.wire.pool.put(held);
        }
        return Ok(());
    }
    Err(match refused::read(response, http.has_session()).await {
        Refused::Error(raw, status) => refused::status_of(raw, status),
        Refused::Session(text) => Lost::Session(text),
        Refused::Status(refusal) => Lost::Status(refusal),
    })
}

/// Whether the response is a stream of events.
pub(super) fn is_stream(response: &Response<Incoming>) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).map(http::HeaderValue::as_bytes).unwrap_or_default();
    kind.get(..17).is_some_and(|start| start.eq_ignore_ascii_case(b"text/event-stream"))
}

/// A whole body, bounded.
pub(super) async fn collect(mut body: Incoming, max: usize) -> Result<Bytes, Lost> {
    let mut first = Bytes::new();
    let mut more: Option<BytesMut> = None;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            Lost::Unknown(format!("the connection broke within its answer: {}", causes(&error)).into())
        })?;
        let Ok(chunk) = frame.into_data() else { continue };
        let known = more.as_ref().map_or(first.len(), BytesMut::len);
        if known + chunk.len() > max {
            return Err(Lost::Odd(format!("its answer is larger than {max} bytes").into()));
        }
        // An answer in one piece, as most are, is not copied.
        match &mut more {
            Some(more) => more.extend_from_slice(&chunk),
            None if first.is_empty() => first = chunk,
            None => {
                let mut both = BytesMut::with_capacity((first.len() + chunk.len()) * 2);
                both.extend_from_slice(&first);
                both.extend_from_slice(&chunk);
                more = Some(both);
            }
        }
    }
    Ok(more.map_or(first, BytesMut::freeze))
}

/// The answer in a text that holds one frame or a batch of them; every other frame is handed over.
pub(super) fn one(text: &Bytes, id: u64, beside: &dyn Fn(Frame)) -> Option<Body> {
    let parts = if Frame::is_batch(text) { Frame::split(text).ok()? } else { vec![text.clone()] };
    let mut answer = None;
    for part in parts {
        match Frame::parse(&part) {
            Ok(Frame::Response { id: seen, body }) => match seen.map(|seen| seen.number()) {
                Some(Some(number)) if number == id => answer = Some(body),
                // Who could not read the request cannot name it.
                None if matches!(body, Body::Error(_)) => answer = answer.or(Some(body)),
                _ => {}
            },
            Ok(frame) => beside(frame),
            Err(_) => {}
        }
    }
    answer
}

/// Puts a connection back whose body may have a last bit to read; what is left is read aside.
pub(super) fn give_back(http: &Arc<Http>, mut body: Incoming, held: Held) {
    if body.is_end_stream() {
        return http.wire.pool.put(held);
    }
    let owner = http.clone();
    http.drain(async move {
        while let Some(Ok(_)) = body.frame().await {}
        if body.is_end_stream() {
            owner.wire.pool.put(held);
        }
    });
}
