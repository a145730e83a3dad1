//! The background stream of a legacy session: what the upstream tells unasked.

use super::super::slot::Lost;
use super::body::is_stream;
use super::refused::{self, Refused};
use super::session::Http;
use super::stream::{self, Place};
use crate::protocol::frame::Frame;
use crate::protocol::sse::Decoder;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

/// How long before the stream is opened again, at first and at most.
const REOPEN: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// Keeps the background stream open; `started` is set once it is, or is known never to be. Returns where the session or the
/// upstream turns out to be gone; an upstream without such a stream is none of that.
pub(crate) async fn listen(http: Arc<Http>, started: watch::Sender<bool>) -> Option<Lost> {
    let mut place = Place::default();
    let mut delay = REOPEN.0;
    let mut was_open = false;
    loop {
        match open(&http, &place, was_open).await {
            Ok(Some(body)) => {
                // What happened between two streams is told again only where it can be asked for by its number.
                if std::mem::replace(&mut was_open, true) && place.last.is_none() {
                    http.wire.inbox.missed();
                }
                started.send_replace(true);
                // A stream that opens and says nothing is no reason to hurry.
                if read(&http, body, &mut place).await {
                    delay = REOPEN.0;
                }
            }
            Ok(None) if !was_open => {
                started.send_replace(true);
                return None;
            }
            Ok(None) => {}
            Err(lost @ (Lost::Session(_) | Lost::Unsent(_))) => return Some(lost),
            Err(lost) => tracing::debug!(cause = &**lost.text(), "a background stream broke"),
        }
        let pause = place.retry.unwrap_or_default().max(delay);
        sleep(pause.mul_f64(0.75 + super::super::super::backoff::random() / 2.0)).await;
        delay = (delay * 2).min(REOPEN.1);
    }
}

/// Opens the stream; nothing where the upstream has none.
async fn open(http: &Arc<Http>, place: &Place, was_open: bool) -> Result<Option<Incoming>, Lost> {
    let (response, _held) = http.wire.pool.send(http.get(place.last.as_deref()), || ()).await?;
    if response.status().is_success() {
        return Ok(is_stream(&response).then(|| response.into_body()));
    }
    // Before there was a stream every refusal means that there is none, whatever it says.
    match refused::read(response, http.has_session()).await {
        Refused::Session(text) if was_open => Err(Lost::Session(text)),
        _ => Ok(None),
    }
}

/// Reads to the end; whether anything was told.
async fn read(http: &Arc<Http>, mut body: Incoming, place: &mut Place) -> bool {
    let mut decoder = Decoder::new(http.wire.max);
    let mut was_told = false;
    loop {
        while let Some(event) = decoder.next_event() {
            let Ok(event) = event else {
                http.wire.inbox.violated("event_too_long", &"an event on the background stream");
                continue;
            };
            place.note(&event);
            if !stream::is_message(&event) {
                continue;
            }
            was_told = true;
            let parts = if Frame::is_batch(&event.data) {
                Frame::split(&event.data).unwrap_or_default()
            } else {
                vec![event.data]
            };
            for part in parts {
                match Frame::parse(&part) {
                    Ok(frame) => stream::unrelated(http, frame),
                    Err(fault) => http.wire.inbox.violated("not_a_frame", &fault),
                }
            }
        }
        match body.frame().await {
            Some(Ok(frame)) => frame.data_ref().into_iter().for_each(|chunk| decoder.push(chunk)),
            _ => return was_told,
        }
    }
}
