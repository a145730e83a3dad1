//! How one POST is answered: a JSON body, a stream, or a refusal.

use super::super::slot::{Arrival, Lost, Slot};
use super::body::{collect, is_stream, one};
use super::refused::{self, Refused};
use super::session::Http;
use super::stream::{self, Reading};
use crate::protocol::frame::Body;
use crate::protocol::headers;
use bytes::Bytes;
use http::Request;
use http::header::CONTENT_TYPE;
use http_body_util::Full;
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
    let (response, mut held) = http.wire.pool.send(request, || slot.enqueued_at(0)).await?;
    slot.keep_room(held.room());
    let session = response.headers().get(headers::MCP_SESSION_ID);
    if let Some(id) = session.filter(|_| asked.opens && response.status().is_success()) {
        http.open_session(id);
    }
    if !response.status().is_success() {
        // What is rare has a box of its own: the future of a plain call stays small.
        return match Box::pin(refused::read(response, http.has_session())).await {
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
        return Box::pin(stream::answer(&reading, response.into_body(), held)).await;
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
