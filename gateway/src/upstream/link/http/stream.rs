//! A stream of events: read as it comes, resumed where that is possible, answered aside.

use super::super::super::chunks;
use super::super::asker::Asker;
use super::super::inbox::Asked;
use super::super::slot::{Arrival, Lost, Slot};
use super::body::{is_stream, one};
use super::pool::{Held, causes};
use super::session::Http;
use crate::call::LogLevel;
use crate::lifecycle::Stretch;
use crate::protocol::frame::{Body, Frame};
use crate::protocol::object::Key;
use crate::protocol::sse::{Decoder, SseEvent, TooLong};
use crate::protocol::{Method, Object};
use bytes::Bytes;
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// How often a stream is resumed without anything new on it.
const RESUMES_MAX: u32 = 5;
/// How long before it is resumed, where the upstream does not say.
const RESUME_AFTER: Duration = Duration::from_secs(1);
/// How long the rest of an answered stream is read, so that its connection can be used again.
const DRAIN_MAX: Duration = Duration::from_secs(1);
/// How long chunks of a result that an answer announced may go on there.
const CHUNKS_MAX: Duration = Duration::from_secs(60 * 60);
/// How long a stream that only tells of what happens may be silent, comments and all. Whoever is behind it may be gone without
/// anybody between having said so; asking anew costs little.
pub(super) const SILENT_MAX: Duration = Duration::from_secs(5 * 60);
/// What an upstream can ask for.
const RETRY: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(60));

/// One exchange whose answer comes as a stream.
pub(super) struct Reading<'a> {
    pub(super) http: &'a Arc<Http>,
    pub(super) id: u64,
    /// In which of the upstream's lives it was begun.
    pub(super) life: u64,
    pub(super) slot: &'a Arc<Slot>,
    /// It is never answered: it tells of what happens.
    pub(super) listens: bool,
}

/// What a stream has said of how it is resumed.
#[derive(Debug, Default)]
pub(super) struct Place {
    /// The last event id.
    pub(super) last: Option<Bytes>,
    /// How long to wait first.
    pub(super) retry: Option<Duration>,
}

impl Place {
    /// Notes what an event sets.
    pub(super) fn note(&mut self, event: &SseEvent) -> bool {
        if let Some(retry) = event.retry {
            self.retry = Some(Duration::from_millis(retry).clamp(RETRY.0, RETRY.1));
        }
        match &event.id {
            Some(id) if Some(id) != self.last.as_ref() => {
                // An empty id takes the last one back.
                self.last = Some(id.clone()).filter(|id| !id.is_empty());
                true
            }
            _ => false,
        }
    }
}

/// Reads to the answer.
pub(super) async fn answer(reading: &Reading<'_>, body: Incoming, held: Held) -> Result<Body, Lost> {
    let mut place = Place::default();
    let (mut body, mut held) = (body, held);
    let mut idle = 0;
    loop {
        let why = match read(reading, &mut body, &mut place, &mut idle).await {
            Ok((answer, rest)) => {
                give_back(reading.http, (body, rest), held, &answer);
                return Ok(answer);
            }
            Err(why) => why,
        };
        if place.last.is_none() || reading.http.is_modern() || idle >= RESUMES_MAX {
            return Err(Lost::Unknown(why.into()));
        }
        idle += 1;
        drop((body, held));
        tokio::select! {
            biased;
            () = reading.http.wire.lives.end_of(reading.life) => return Err(Lost::Unknown(why.into())),
            () = sleep(place.retry.unwrap_or(RESUME_AFTER)) => {}
        }
        (body, held) = resume(reading.http, &place)
            .await
            .map_err(|lost| Lost::Unknown(format!("{why}, and {}", lost.text()).into()))?;
        reading.slot.keep_room(held.room());
    }
}

async fn resume(http: &Arc<Http>, place: &Place) -> Result<(Incoming, Held), Lost> {
    http.wire.rested().await;
    let (response, held) = http.wire.pool.send(&mut Some(http.get(place.last.as_deref())), || ()).await?;
    if !response.status().is_success() || !is_stream(&response) {
        return Err(Lost::Unknown(format!("it cannot be resumed: HTTP {}", response.status().as_u16()).into()));
    }
    Ok((response.into_body(), held))
}

/// Reads one stretch of a stream; the text says why it ended without the answer.
async fn read(
    reading: &Reading<'_>,
    body: &mut Incoming,
    place: &mut Place,
    idle: &mut u32,
) -> Result<(Body, Decoder), String> {
    let Reading { http, id, listens, .. } = reading;
    let mut decoder = Decoder::new(http.wire.max);
    let mut stretch = Stretch::default();
    loop {
        while let Some(event) = decoder.next_event() {
            let bytes = event.as_ref().map_or(0, |event| event.data.len());
            if let Some(answer) = heed(reading, event, place, idle) {
                return Ok((answer, decoder));
            }
            stretch.heard(bytes).await;
        }
        match piece(body, *listens).await {
            Some(Ok(frame)) => {
                http.wire.pulse.beat();
                frame.data_ref().into_iter().for_each(|chunk| decoder.push(chunk));
            }
            Some(Err(why)) => return Err(format!("the stream broke before the answer: {why}")),
            None => {
                return Err(format!(
                    "the stream ended without the answer; no response was received for request id {id}"
                ));
            }
        }
    }
}

/// Takes one event of a stream: the answer, where it holds that.
fn heed(reading: &Reading<'_>, event: Result<SseEvent, TooLong>, place: &mut Place, idle: &mut u32) -> Option<Body> {
    let Reading { http, id, slot, .. } = reading;
    let Ok(event) = event else {
        let max = http.wire.max;
        http.wire.inbox.violated("event_too_long", &format_args!("an event of more than {max} bytes"));
        return None;
    };
    if place.note(&event) {
        *idle = 0;
    }
    if !is_message(&event) {
        return None;
    }
    one(&event.data, *id, &|frame| beside(http, slot, *id, frame))
}

/// What comes next on a stream; of one that only tells of what happens, silence is an end.
pub(super) async fn piece(body: &mut Incoming, listens: bool) -> Option<Result<http_body::Frame<Bytes>, String>> {
    let next = body.frame();
    let frame = match listens {
        true => match timeout(SILENT_MAX, next).await {
            Ok(frame) => frame,
            Err(_) => return Some(Err(format!("nothing came on it for {} s", SILENT_MAX.as_secs()))),
        },
        false => next.await,
    };
    frame.map(|frame| frame.map_err(|error| causes(&error)))
}

/// Whether an event holds a message; others are for somebody else.
pub(super) fn is_message(event: &SseEvent) -> bool {
    !event.data.is_empty() && (event.name.is_empty() || event.name == "message")
}

/// A frame on the stream of an exchange that is not its answer.
pub(super) fn beside(http: &Arc<Http>, slot: &Arc<Slot>, id: u64, frame: Frame) {
    match frame {
        Frame::Notification { method: Method::Progress, params } => {
            let token =
                params.get(Key::ProgressToken).and_then(|raw| std::str::from_utf8(raw).ok()?.parse::<u64>().ok());
            match token == Some(id) {
                true => _ = slot.push(Arrival::Progress(params)),
                false => progressed(http, params),
            }
        }
        Frame::Notification { method: Method::Message, params } => {
            let level = params.find("level").and_then(LogLevel::parse).unwrap_or(LogLevel::Info);
            // What comes on a call's own stream is of that call: where it wants less, it goes nowhere else.
            match slot.speaks() {
                true if slot.wants(level) => _ = slot.push(Arrival::Log(level, params)),
                true => {}
                false => http.wire.inbox.notified(Method::Message, params),
            }
        }
        Frame::Notification { method: Method::Acknowledged, params } => _ = slot.push(Arrival::Acknowledged(params)),
        Frame::Notification { method: Method::TaskChanged, params } => _ = slot.push(Arrival::Task(params)),
        Frame::Request { id, method, params } => asked(http, Asked { id, method, params, on: Some(slot.clone()) }),
        other => unrelated(http, other),
    }
}

/// A frame that belongs to no exchange.
pub(super) fn unrelated(http: &Arc<Http>, frame: Frame) {
    let inbox = &http.wire.inbox;
    match frame {
        Frame::Notification { method: Method::Cancelled, params } => http.desk().withdrawn(&params),
        Frame::Notification { method: Method::Progress, params } => progressed(http, params),
        Frame::Notification { method, params } => inbox.notified(method, params),
        Frame::Request { id, method, params } => asked(http, Asked { id, method, params, on: None }),
        Frame::Response { .. } => inbox.violated("unknown_id", &"an answer to an id that was never ours"),
    }
}

/// Progress of no request on whose stream it came: of a task that was made, or nobody's.
fn progressed(http: &Arc<Http>, params: Object) {
    let inbox = &http.wire.inbox;
    if !http.made.progressed(&**inbox, params) {
        inbox.violated("unknown_token", &"progress of another request");
    }
}

fn asked(http: &Arc<Http>, asked: Asked) {
    http.wire.inbox.asked(asked, http.clone());
}

/// Puts a connection back whose body may have a last bit to read; what is left is read aside.
fn give_back(http: &Arc<Http>, (mut body, rest): (Incoming, Decoder), held: Held, answer: &Body) {
    if let Some(id) = chunks::announced_id(answer) {
        let read = chunked(http.clone(), (body, rest), held, id);
        return http.wire.tasks.spawn_until_end(async move { drop(timeout(CHUNKS_MAX, read).await) });
    }
    if body.is_end_stream() {
        return http.wire.pool.put(held);
    }
    let owner = http.clone();
    let rest = async move {
        while let Some(Ok(_)) = body.frame().await {}
        if body.is_end_stream() {
            owner.wire.pool.put(held);
        }
    };
    http.wire.tasks.spawn(async move { drop(timeout(DRAIN_MAX, rest).await) });
}

/// Reads on behind an answer whose result comes in chunks: on this stream, or on another one.
async fn chunked(http: Arc<Http>, (mut body, mut decoder): (Incoming, Decoder), held: Held, id: Bytes) {
    let (mut is_here, mut is_whole) = (false, false);
    let mut stretch = Stretch::default();
    let is_broken = loop {
        while let Some(event) = decoder.next_event() {
            let Some(event) = event.ok().filter(is_message) else { continue };
            stretch.message(event.data.len()).await;
            let Ok(Frame::Notification { method, params }) = Frame::parse(&event.data) else { continue };
            if chunks::is_chunk(&method) {
                let part = chunks::part_of(&params).filter(|(of, _)| **of == *id);
                is_here |= part.is_some();
                is_whole |= part.is_some_and(|(_, is_final)| is_final);
                http.wire.inbox.notified(method, params);
            }
        }
        match body.frame().await {
            Some(Ok(frame)) => frame.data_ref().into_iter().for_each(|chunk| decoder.push(chunk)),
            end => break end.is_some(),
        }
    };
    if !is_whole && (is_here || is_broken) {
        http.wire.inbox.unfinished(&id);
    }
    if body.is_end_stream() {
        http.wire.pool.put(held);
    }
}
