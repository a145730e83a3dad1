//! How one POST is answered: a JSON body, a stream, or a refusal.

use super::super::slot::{Arrival, Lost, Slot};
use super::body::{collect, names_events, one};
use super::leave::Trial;
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
    /// In which of the upstream's lives.
    pub(super) life: u64,
    /// Whether it asks who the upstream is: then a status says more than a body.
    pub(super) is_meeting: bool,
    /// Whether its answer opens a session.
    pub(super) opens: bool,
    /// Whether it is never answered, but told of what happens.
    pub(super) listens: bool,
}

/// Sends a request and brings all that comes back to its slot.
#[allow(clippy::manual_async_fn, reason = "an async fn keeps its arguments twice, and every call has one of these")]
pub(super) fn drive(
    http: Arc<Http>,
    request: Request<Full<Bytes>>,
    asked: Asked,
    slot: Arc<Slot>,
    trial: Option<Trial>,
) -> impl Future<Output = ()> + Send {
    async move {
        let mut outcome = match http.wire.lives.ended(asked.life) {
            None => run(&http, &mut Some(request), asked, &slot).await,
            Some(why) => Err(Lost::Unsent(why)),
        };
        // What was ended from here says nothing of the upstream.
        if !outcome.as_mut().is_err_and(|lost| http.wire.lives.explain(asked.life, lost)) {
            http.wire.judge(&outcome);
        }
        drop(trial);
        let end = match outcome {
            Ok(body) => {
                http.made.answered(asked.id, &slot, &body);
                Arrival::Response(body)
            }
            Err(lost) => Arrival::Lost(lost),
        };
        slot.finish(end);
    }
}

async fn run(
    http: &Arc<Http>,
    request: &mut Option<Request<Full<Bytes>>>,
    asked: Asked,
    slot: &Arc<Slot>,
) -> Result<Body, Lost> {
    let (response, mut held) = http.wire.pool.send(request, || slot.enqueued_at(0)).await?;
    slot.keep_room(held.room());
    if !response.status().is_server_error() {
        http.wire.pulse.beat();
    }
    if asked.opens
        && response.status().is_success()
        && let Some(id) = response.headers().get(headers::MCP_SESSION_ID)
    {
        http.open_session(id);
    }
    if !response.status().is_success() {
        // What is rare has a box of its own: the future of a plain call stays small.
        let status = response.status();
        let refused = Box::pin(refused::read(response, http)).await;
        http.wire.denied(status, &refused);
        return match refused {
            Refused::Error(raw, status) if !(asked.is_meeting && refused::says_nothing(status)) => Ok(Body::Error(raw)),
            Refused::Error(raw, status) => Err(refused::status_of(raw, status)),
            // A stateless upstream has no sessions, and while meeting there is none yet.
            Refused::Session(text) if !http.is_modern() && !asked.is_meeting => Err(Lost::Session(text)),
            Refused::Session(text) => Err(refused::plain(404, text)),
            Refused::Status(refusal) => Err(Lost::Status(refusal)),
        };
    }
    http.wire.admitted();
    let kind = response.headers().get(CONTENT_TYPE).cloned();
    if kind.as_ref().is_some_and(names_events) {
        let reading = Reading { http, id: asked.id, life: asked.life, slot, listens: asked.listens };
        return Box::pin(stream::answer(&reading, response.into_body(), held)).await;
    }
    let status = response.status().as_u16();
    let text = collect(response.into_body(), http.wire.max).await?;
    http.wire.pool.put(held);
    if text.is_empty() {
        return Err(Lost::Odd(format!("HTTP {status} without an answer").into()));
    }
    one(&text, asked.id, &|frame| stream::beside(http, slot, asked.id, frame)).ok_or_else(|| {
        let kind = kind.as_ref().map_or("no content type".into(), |kind| String::from_utf8_lossy(kind.as_bytes()));
        let hint = if kind.starts_with("text/html") { "; look whether the path of its `url` is right" } else { "" };
        Lost::Odd(format!("HTTP {status} with {kind}, and no answer to the request in it{hint}").into())
    })
}
