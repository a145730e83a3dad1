//! The background stream of a legacy session: what the upstream tells unasked.

use super::connection::pool::Lane;
use super::response::body::is_stream;
use super::response::{Place, refusal, sse};
use super::send::Received;
use super::session::HttpSession;
use crate::health::CauseCode;
use crate::metrics::messages;
use crate::protocol::frame::message::{BATCH_MAX, Frame};
use crate::protocol::framing::Untaken;
use crate::protocol::framing::sse::SseEvent;
use crate::runtime::FairShare;
use crate::runtime::timer;
use crate::transport::exchange::Lost;
use hyper::body::Incoming;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// How long before the stream is opened again, at first and at most.
const REOPEN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

impl HttpSession {
    /// Keeps the background stream open; `started` is set once it is, or is known never to be. What begins after nobody waits for
    /// that any more may have come too late for something. Returns where the session or the upstream turns out to be gone; an
    /// upstream without such a stream is none of that.
    pub async fn listen(self: Arc<Self>, started: watch::Sender<bool>) -> Option<Lost> {
        let mut place = Place::default();
        let mut pace = Pace::default();
        let mut was_open = false;
        loop {
            match open(&self, &place, was_open).await {
                Ok(Opened::Stream(body)) => {
                    // What happened between two streams is told again only where it can be asked for by its number.
                    if started.is_closed() && place.last.is_none() {
                        self.inbox.missed();
                    }
                    was_open = true;
                    started.send_replace(true);
                    let opened = Instant::now();
                    let was_told = read(&self, body, &mut place).await;
                    pace.ended(was_told, opened.elapsed());
                }
                Ok(Opened::None) if !was_open => {
                    started.send_replace(true);
                    return None;
                }
                Ok(Opened::NotNow(status)) => {
                    tracing::debug!(status, "background stream refused");
                    // Nobody need wait for it; what is missed until it starts is made good then.
                    started.send_replace(true);
                }
                Ok(Opened::None) => {}
                Err(lost @ (Lost::Session(_) | Lost::Unsent(_))) => return Some(lost),
                Err(lost) => self.inbox.failed("background_stream", lost.text().code(), &lost.text().full()),
            }
            let pause = pace.next(crate::transport::jitter::random());
            sleep(place.retry.unwrap_or_default().max(pause)).await;
        }
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

/// Opens the stream, where the upstream has one.
async fn open(http: &Arc<HttpSession>, place: &Place, was_open: bool) -> Result<Opened, Lost> {
    http.wire.breaker.rested().await;
    http.is_there()?;
    let get = || http.get(place.last.as_deref());
    let Received { response, held: _held, .. } =
        http.wire.send(Lane::Exchange(http.share.as_ref()), &mut Some(get()), &get, &|_| ()).await?;
    if response.status().is_success() {
        return Ok(if is_stream(&response) { Opened::Stream(response.into_body()) } else { Opened::None });
    }
    let refused = refusal::read(response, http, None).await;
    // Before there was a stream no refusal speaks of the session, whatever it says: there may be none.
    if refused.denies_session && was_open && http.is_lost().await {
        return Err(Lost::Session(refused.why.text));
    }
    let may_pass = refused.why.class().may_pass();
    Ok(if may_pass { Opened::NotNow(refused.why.status) } else { Opened::None })
}

/// Reads to the end; whether anything was told.
async fn read(http: &Arc<HttpSession>, mut body: Incoming, place: &mut Place) -> bool {
    let mut decoder = sse::decoder(http, http.inbox.budget());
    let mut was_told = false;
    let (mut stretch, mut rate) = (FairShare::default(), timer::Pace::new(sse::EVENT_PAUSE));
    loop {
        while let Some(event) = decoder.next_event() {
            let bytes = event.as_ref().map_or(0, |event| event.data.len());
            was_told |= heed(http, event, place);
            stretch.heard(bytes).await;
        }
        let begun = decoder.begun();
        let Ok(piece) = rate.keep(begun, sse::piece(&mut body, true, decoder.gathering())).await else {
            http.inbox.failed("background_stream", CauseCode::ResponseIncomplete, &sse::TOO_SLOW);
            return was_told;
        };
        match piece {
            Some(Ok(frame)) => {
                http.wire.pulse.beat();
                frame.data_ref().into_iter().for_each(|chunk| decoder.push(chunk));
            }
            _ => return was_told,
        }
    }
}

/// Takes one event; whether it told anything.
fn heed(http: &Arc<HttpSession>, event: Result<SseEvent, Untaken>, place: &mut Place) -> bool {
    let event = match event {
        Ok(event) => event,
        Err(Untaken::TooLong) => {
            http.inbox.violated("event_too_long", &"an event on the background stream");
            return false;
        }
        Err(Untaken::NoRoom) => return false,
    };
    place.note(&event);
    if !sse::is_message(&event) {
        return false;
    }
    let parts = if Frame::is_batch(&event.data) {
        Frame::split(&event.data, BATCH_MAX).unwrap_or_default()
    } else {
        vec![event.data]
    };
    for part in parts {
        match Frame::parse(&part) {
            Ok(frame) => {
                messages::UPSTREAM.received();
                sse::unrelated(http, frame);
            }
            Err(fault) => http.inbox.violated("not_a_frame", &fault),
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::http::StatusClass;

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
        let passes = |status: &u16| StatusClass::of(*status).may_pass();
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
