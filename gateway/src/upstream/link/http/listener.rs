//! The background stream of a legacy session: what the upstream tells unasked.

use super::super::slot::Lost;
use super::body::is_stream;
use super::refused::{self, Refused};
use super::session::Http;
use super::stream::{self, Place};
use crate::lifecycle::Stretch;
use crate::protocol::frame::Frame;
use crate::protocol::sse::{Decoder, SseEvent, TooLong};
use http::StatusCode;
use hyper::body::Incoming;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// How long before the stream is opened again, at first and at most.
const REOPEN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Keeps the background stream open; `started` is set once it is, or is known never to be. What begins after nobody waits for
/// that any more may have come too late for something. Returns where the session or the upstream turns out to be gone; an
/// upstream without such a stream is none of that.
pub(crate) async fn listen(http: Arc<Http>, started: watch::Sender<bool>) -> Option<Lost> {
    let mut place = Place::default();
    let mut pace = Pace::default();
    let mut was_open = false;
    loop {
        match open(&http, &place, was_open).await {
            Ok(Opened::Stream(body)) => {
                // What happened between two streams is told again only where it can be asked for by its number.
                if started.is_closed() && place.last.is_none() {
                    http.wire.inbox.missed();
                }
                was_open = true;
                started.send_replace(true);
                let opened = Instant::now();
                let was_told = read(&http, body, &mut place).await;
                pace.ended(was_told, opened.elapsed());
            }
            Ok(Opened::None) if !was_open => {
                started.send_replace(true);
                return None;
            }
            Ok(Opened::NotNow(status)) => {
                tracing::debug!(status, "a background stream is refused for now");
                // Nobody need wait for it; what is missed until it starts is made good then.
                started.send_replace(true);
            }
            Ok(Opened::None) => {}
            Err(lost @ (Lost::Session(_) | Lost::Unsent(_))) => return Some(lost),
            Err(lost) => tracing::debug!(cause = &**lost.text(), "a background stream broke"),
        }
        let pause = pace.next(super::super::super::backoff::random());
        sleep(place.retry.unwrap_or_default().max(pause)).await;
    }
}

/// How soon the stream is opened again.
#[derive(Debug)]
struct Pace(Duration);

impl Default for Pace {
    fn default() -> Self {
        Self(REOPEN.0)
    }
}

impl Pace {
    /// A stream has ended. One that opens, says nothing and ends is no reason to hurry, however often it does.
    fn ended(&mut self, was_told: bool, lived: Duration) {
        if was_told || lived >= REOPEN.1 {
            self.0 = REOPEN.0;
        }
    }

    /// The next pause; `random` lies in 0..1.
    fn next(&mut self, random: f64) -> Duration {
        let pause = self.0.mul_f64(0.75 + random / 2.0);
        self.0 = (self.0 * 2).min(REOPEN.1);
        pause
    }
}

/// What became of asking for the stream.
enum Opened {
    Stream(Incoming),
    /// It is refused, as what passes is.
    NotNow(u16),
    /// There is none.
    None,
}

/// Whether whoever refuses with this status may not do so later; others have no such stream.
fn may_pass(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 500 | 502 | 503 | 504)
}

/// Opens the stream, where the upstream has one.
async fn open(http: &Arc<Http>, place: &Place, was_open: bool) -> Result<Opened, Lost> {
    http.wire.rested().await;
    let (response, _held) = http.wire.pool.send(&mut Some(http.get(place.last.as_deref())), || ()).await?;
    if response.status().is_success() {
        return Ok(if is_stream(&response) { Opened::Stream(response.into_body()) } else { Opened::None });
    }
    let status = response.status();
    // Before there was a stream no refusal speaks of the session, whatever it says: there may be none.
    match refused::read(response, http).await {
        Refused::Session(text) if was_open => Err(Lost::Session(text)),
        _ if may_pass(status) => Ok(Opened::NotNow(status.as_u16())),
        _ => Ok(Opened::None),
    }
}

/// Reads to the end; whether anything was told.
async fn read(http: &Arc<Http>, mut body: Incoming, place: &mut Place) -> bool {
    let mut decoder = Decoder::new(http.wire.max);
    let mut was_told = false;
    let mut stretch = Stretch::default();
    loop {
        while let Some(event) = decoder.next_event() {
            let bytes = event.as_ref().map_or(0, |event| event.data.len());
            was_told |= heed(http, event, place);
            stretch.heard(bytes).await;
        }
        match stream::piece(&mut body, true).await {
            Some(Ok(frame)) => {
                http.wire.pulse.beat();
                frame.data_ref().into_iter().for_each(|chunk| decoder.push(chunk));
            }
            _ => return was_told,
        }
    }
}

/// Takes one event; whether it told anything.
fn heed(http: &Arc<Http>, event: Result<SseEvent, TooLong>, place: &mut Place) -> bool {
    let Ok(event) = event else {
        http.wire.inbox.violated("event_too_long", &"an event on the background stream");
        return false;
    };
    place.note(&event);
    if !stream::is_message(&event) {
        return false;
    }
    let parts =
        if Frame::is_batch(&event.data) { Frame::split(&event.data).unwrap_or_default() } else { vec![event.data] };
    for part in parts {
        match Frame::parse(&part) {
            Ok(frame) => stream::unrelated(http, frame),
            Err(fault) => http.wire.inbox.violated("not_a_frame", &fault),
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_that_say_nothing_are_opened_a_dozen_times_in_five_minutes_at_most() {
        for random in [0.0, 0.5, 1.0] {
            let (mut pace, mut now, mut opened) = (Pace::default(), Duration::ZERO, 0);
            while now < Duration::from_secs(300) {
                opened += 1;
                pace.ended(false, Duration::from_millis(10));
                now += pace.next(random);
            }
            assert!((8..=12).contains(&opened), "{opened} at {random}");
        }
    }

    #[test]
    fn only_what_passes_is_asked_for_again() {
        let passes = |status: &u16| may_pass(StatusCode::from_u16(*status).unwrap());
        assert!([429, 500, 502, 503, 504].iter().all(passes));
        assert!(![400, 401, 403, 404, 405, 406, 410, 501, 505].iter().any(passes));
    }

    #[test]
    fn one_that_told_something_or_lasted_is_opened_again_soon() {
        for (was_told, lived) in [(true, Duration::ZERO), (false, Duration::from_secs(60))] {
            let mut pace = Pace::default();
            (0..10).for_each(|_| _ = pace.next(0.5));
            assert_eq!(pace.next(0.5), Duration::from_secs(60));
            pace.ended(was_told, lived);
            assert_eq!(pace.next(0.5), Duration::from_secs(1));
        }
    }
}
