//! A stream of events: read as it comes, resumed where that is possible, answered aside.

use super::body::{is_stream, one};
use super::fragments::{self, Fragments, Unjoined};
use super::place::Place;
use crate::call::LogLevel;
use crate::call::share::Share;
use crate::health::{Cause, CauseCode};
use crate::memory::Gather;
use crate::memory::account::Kind;
use crate::memory::budget::{Budget, Spent};
use crate::metrics::messages;
use crate::protocol::frame::Method;
use crate::protocol::frame::message::{Body, Frame, FrameFault};
use crate::protocol::framing::Untaken;
use crate::protocol::framing::sse::{Decoder, SseEvent, too_long};
use crate::protocol::payload::chunk;
use crate::protocol::value::{Key, Object};
use crate::runtime::FairShare;
use crate::runtime::timer::Pace;
use crate::runtime::timer::late::{within, within_until};
use crate::transport::events::IncomingRequest;
use crate::transport::exchange::Lost;
use crate::transport::exchange::mailbox::{Arrival, Mailbox};
use crate::transport::http::connection::pool::{Held, Lane, causes};
use crate::transport::http::session::HttpSession;
use crate::transport::questions::Asker;
use bytes::Bytes;
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// How often a stream is resumed without anything new on it.
const RESUMES_MAX: u32 = 5;
/// How long nothing may come of the answer once its stream was resumed: what went out is perhaps not told again, and what comes on
/// the new stream may be for others.
const RESUMED_MAX: Duration = Duration::from_secs(2 * 60);
/// How long before it is resumed, where the upstream does not say.
const RESUME_AFTER: Duration = Duration::from_secs(1);
/// How long the rest of an answered stream is read, so that its connection can be used again.
const DRAIN_MAX: Duration = Duration::from_secs(1);
/// How long chunks of a result that an answer announced may go on there.
const CHUNKS_MAX: Duration = Duration::from_secs(60 * 60);
/// The longest pause within an event of a stream that no call bounds, and what is said of one that is longer.
pub(crate) const EVENT_PAUSE: Duration = Duration::from_secs(30);
pub(crate) const TOO_SLOW: &str = "an event that it began did not go on, or came more slowly than 16 KiB/s";
/// How long a stream that only tells of what happens may be silent, comments and all. Whoever is behind it may be gone without
/// anybody between having said so; asking anew costs little.
pub(crate) const SILENT_MAX: Duration = Duration::from_secs(5 * 60);

/// Takes a stream apart.
pub(crate) type Events = Decoder<Gather>;

/// Takes a stream of this upstream apart.
pub(crate) fn decoder(http: &HttpSession, budget: &Budget) -> Events {
    let max = http.wire.max;
    Decoder::new(max, Gather::new(budget, Kind::Line, max))
}

/// One exchange whose answer comes as a stream.
pub(crate) struct Reading<'a> {
    pub(crate) http: &'a Arc<HttpSession>,
    pub(crate) id: u64,
    /// The epoch of connections in which it began.
    pub(crate) epoch: u64,
    pub(crate) slot: &'a Arc<Mailbox>,
    /// It is never answered: it tells of what happens.
    pub(crate) listens: bool,
}

/// When something new was last told.
#[derive(Debug, Default)]
struct News {
    /// How often the stream was resumed without anything.
    idle: u32,
    /// By when something has to be told, once it was resumed.
    until: Option<Instant>,
    /// Parts of the answer.
    parts: Option<Box<Fragments>>,
}

impl News {
    fn told(&mut self) {
        self.until = self.until.map(|_| Instant::now() + RESUMED_MAX);
    }

    fn are_over(&self) -> bool {
        self.until.is_some_and(|until| until <= Instant::now())
    }
}

/// Reads to the answer.
pub(crate) async fn answer(reading: &Reading<'_>, body: Incoming, held: Held) -> Result<Body, Lost> {
    let mut place = Place::default();
    let (mut body, mut held) = (body, held);
    let mut news = News::default();
    loop {
        let why = match read(reading, &mut body, &mut place, &mut news).await {
            Ok((answer, rest)) => {
                give_back(reading.http, (body, rest), held, &answer);
                return Ok(answer);
            }
            Err(Cut::Lost(why)) => return Err(Lost::Dropped(Cause::new(CauseCode::MemoryFull, why))),
            Err(Cut::Odd(why)) => return Err(Lost::Odd(Cause::new(CauseCode::ResponseInvalid, why))),
            Err(Cut::Broken(why)) => broken(why),
        };
        if place.last.is_none() || reading.http.is_modern() || news.idle >= RESUMES_MAX || news.are_over() {
            return Err(Lost::Unknown(why));
        }
        news.idle += 1;
        let until = *news.until.get_or_insert_with(|| Instant::now() + RESUMED_MAX);
        drop((body, held));
        tokio::select! {
            biased;
            () = reading.http.wire.epoch.end_of(reading.epoch) => return Err(Lost::Unknown(why)),
            () = sleep(place.retry.unwrap_or(RESUME_AFTER)) => {}
        }
        let late = |_| Err(Lost::Unknown(broken("the stream could not be resumed in time")));
        let resumed = within_until(until, resume(reading.http, reading.slot.share.as_ref(), &place));
        let resumed = resumed.await.unwrap_or_else(late);
        (body, held) = resumed.map_err(|lost| Lost::Unknown(why.own(", and ").then(lost.text())))?;
        reading.slot.keep_room(held.room());
    }
}

fn broken(why: impl Into<String>) -> Cause {
    Cause::new(CauseCode::ConnectionLost, why)
}

async fn resume(http: &Arc<HttpSession>, whose: Option<&Share>, place: &Place) -> Result<(Incoming, Held), Lost> {
    http.wire.breaker.rested().await;
    http.is_there()?;
    let get = || http.get(place.last.as_deref());
    let received = http.wire.send(Lane::Exchange(whose), &mut Some(get()), &get, &|_| ()).await?;
    let (response, held) = (received.response, received.held);
    if !response.status().is_success() || !is_stream(&response) {
        return Err(Lost::Unknown(broken(format!("it cannot be resumed: HTTP {}", response.status().as_u16()))));
    }
    Ok((response.into_body(), held))
}

/// Why a stretch of a stream ended without the answer.
pub(crate) enum Cut {
    /// It may be resumed.
    Broken(String),
    /// The answer would not be taken then either.
    Lost(String),
    /// It is no answer that can be taken.
    Odd(String),
}

impl From<Unjoined> for Cut {
    fn from(why: Unjoined) -> Self {
        match why {
            Unjoined::TooLong(why) | Unjoined::Unreadable(why) => Self::Odd(why),
            Unjoined::NoRoom(why) => Self::Lost(format!("part of the response was dropped: {why}")),
        }
    }
}

/// Reads one stretch of a stream.
async fn read(
    reading: &Reading<'_>,
    body: &mut Incoming,
    place: &mut Place,
    news: &mut News,
) -> Result<(Body, Events), Cut> {
    let Reading { http, listens, slot, .. } = reading;
    let mut decoder = decoder(http, &slot.budget(http.inbox.budget()));
    let (mut stretch, mut pace) = (FairShare::default(), Pace::new(EVENT_PAUSE));
    loop {
        while let Some(event) = decoder.next_event() {
            let bytes = event.as_ref().map_or(0, |event| event.data.len());
            if let Err(why @ Untaken::NoRoom) = event {
                return Err(Cut::Lost(format!("part of the response was dropped: {why}")));
            }
            if let Some(answer) = heed(reading, event, place, news) {
                return answer.map(|answer| (answer, decoder));
            }
            stretch.heard(bytes).await;
        }
        // The time of a call bounds its events.
        let begun = if *listens { decoder.begun() } else { None };
        let next = piece(body, *listens, decoder.gathering());
        let next = match news.until {
            None => pace.keep(begun, next).await.unwrap_or_else(|_| Some(Err(Cut::Broken(TOO_SLOW.to_owned())))),
            Some(until) => within_until(until, next).await.unwrap_or_else(|_| {
                let time = RESUMED_MAX.as_secs();
                Some(Err(Cut::Broken(format!(
                    "no part of the answer arrived within {time} s after the stream was resumed"
                ))))
            }),
        };
        match next {
            Some(Ok(frame)) => {
                http.wire.pulse.beat();
                frame.data_ref().into_iter().for_each(|chunk| decoder.push(chunk));
            }
            Some(Err(cut @ (Cut::Lost(_) | Cut::Odd(_)))) => return Err(cut),
            Some(Err(Cut::Broken(why))) => {
                return Err(Cut::Broken(format!("the stream broke before the answer: {why}")));
            }
            None => {
                return Err(Cut::Broken("the stream ended without the answer".into()));
            }
        }
    }
}

/// Takes one event of a stream: the answer, where it holds that.
fn heed(
    reading: &Reading<'_>,
    event: Result<SseEvent, Untaken>,
    place: &mut Place,
    news: &mut News,
) -> Option<Result<Body, Cut>> {
    let Reading { http, id, slot, .. } = reading;
    let Ok(event) = event else {
        http.inbox.violated("event_too_long", &too_long(http.wire.max));
        return None;
    };
    if place.note(&event) {
        news.idle = 0;
    }
    if !is_message(&event) {
        let max = http.wire.max;
        let room = || Gather::new(&slot.budget(http.inbox.budget()), Kind::Line, max);
        let taken = (!reading.listens).then(|| fragments::take(&mut news.parts, &event, *id, (max, room)))??;
        return Some(taken.map_err(Cut::from));
    }
    news.told();
    let odd = |fault: &FrameFault| http.inbox.violated("not_a_frame", fault);
    one(&event.data, *id, &|frame| beside(http, slot, *id, frame), &odd).map(Ok)
}

/// What comes next on a stream; of one that only tells of what happens, silence is an end.
pub(crate) async fn piece(
    body: &mut Incoming,
    listens: bool,
    gather: Option<&mut Gather>,
) -> Option<Result<http_body::Frame<Bytes>, Cut>> {
    let next = async {
        let Some(gather) = gather else { return Ok(body.frame().await) };
        tokio::select! {
            biased;
            () = gather.lost() => Err(Cut::Lost(format!("part of the response was dropped: {}", Spent::LOST))),
            frame = body.frame() => Ok(frame),
        }
    };
    let frame = match listens {
        true => match within(SILENT_MAX, next).await {
            Ok(frame) => frame,
            Err(_) => return Some(Err(Cut::Broken(format!("nothing came on it for {} s", SILENT_MAX.as_secs())))),
        },
        false => next.await,
    };
    let frame = match frame {
        Ok(frame) => frame,
        Err(why) => return Some(Err(why)),
    };
    frame.map(|frame| frame.map_err(|error| Cut::Broken(causes(&error))))
}

/// Whether an event holds a message; others are for somebody else.
pub(crate) fn is_message(event: &SseEvent) -> bool {
    !event.data.is_empty() && (event.name.is_empty() || event.name == "message")
}

/// A frame on the stream of an exchange that is not its answer.
pub(crate) fn beside(http: &Arc<HttpSession>, slot: &Arc<Mailbox>, id: u64, frame: Frame) {
    match frame {
        Frame::Notification { method: Method::Progress, params } => {
            let token =
                params.get(Key::ProgressToken).and_then(|raw| std::str::from_utf8(raw).ok()?.parse::<u64>().ok());
            match token == Some(id) {
                true => _ = slot.push(Arrival::Progress(params), http.inbox.budget()),
                false => progressed(http, params),
            }
        }
        Frame::Notification { method: Method::Message, params } => {
            let level = params.find("level").and_then(LogLevel::parse).unwrap_or(LogLevel::Info);
            // What comes on a call's own stream is of that call: where it wants less, it goes nowhere else.
            match slot.speaks() {
                true if slot.wants(level) => _ = slot.push(Arrival::Log(level, params), http.inbox.budget()),
                true => {}
                false => http.inbox.notified(Method::Message, params),
            }
        }
        Frame::Notification { method: Method::Acknowledged, params } => {
            _ = slot.push(Arrival::Acknowledged(params), http.inbox.budget())
        }
        Frame::Notification { method: Method::TaskChanged, params } => {
            _ = slot.push(Arrival::Task(params), http.inbox.budget())
        }
        Frame::Request { id, method, params } => {
            asked(http, IncomingRequest { id, method, params, on: Some(slot.clone()) })
        }
        other => unrelated(http, other),
    }
}

/// A frame that belongs to no exchange.
pub(crate) fn unrelated(http: &Arc<HttpSession>, frame: Frame) {
    let inbox = &http.inbox;
    match frame {
        Frame::Notification { method: Method::Cancelled, params } => http.desk().withdrawn(&params),
        Frame::Notification { method: Method::Progress, params } => progressed(http, params),
        Frame::Notification { method, params } => inbox.notified(method, params),
        Frame::Request { id, method, params } => asked(http, IncomingRequest { id, method, params, on: None }),
        Frame::Response { .. } => inbox.violated("unknown_id", &"a response to an unknown id"),
    }
}

/// Progress of no request on whose stream it came: of a task that was made, or nobody's.
fn progressed(http: &Arc<HttpSession>, params: Object) {
    let inbox = &http.inbox;
    let token = params.get(Key::ProgressToken).and_then(|raw| std::str::from_utf8(raw).ok()?.parse::<u64>().ok());
    if !http.made.progressed(&**inbox, params) {
        match token.is_some_and(|id| http.is_over(id)) {
            true => inbox.violated("late_progress", &"progress of a request that is over"),
            false => inbox.violated("unknown_token", &"progress of another request"),
        }
    }
}

fn asked(http: &Arc<HttpSession>, asked: IncomingRequest) {
    http.inbox.asked(asked, http.clone());
}

/// Puts a connection back whose body may have a last bit to read; what is left is read aside.
fn give_back(http: &Arc<HttpSession>, (mut body, rest): (Incoming, Events), held: Held, answer: &Body) {
    if let Some(id) = chunk::announced_id(answer) {
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
async fn chunked(http: Arc<HttpSession>, (mut body, mut decoder): (Incoming, Events), held: Held, id: Bytes) {
    let (mut is_here, mut is_whole) = (false, false);
    let mut stretch = FairShare::default();
    let is_broken = loop {
        while let Some(event) = decoder.next_event() {
            let Some(event) = event.ok().filter(is_message) else { continue };
            stretch.message(event.data.len()).await;
            let Ok(frame) = Frame::parse(&event.data) else { continue };
            messages::UPSTREAM.received();
            let Frame::Notification { method, params } = frame else { continue };
            if chunk::is_chunk(&method) {
                let part = chunk::part_of(&params).filter(|(of, _)| **of == *id);
                is_here |= part.is_some();
                is_whole |= part.is_some_and(|(_, is_final)| is_final);
                http.inbox.notified(method, params);
            }
        }
        match piece(&mut body, false, decoder.gathering()).await {
            Some(Ok(frame)) => frame.data_ref().into_iter().for_each(|chunk| decoder.push(chunk)),
            end => break end.is_some(),
        }
    };
    if !is_whole && (is_here || is_broken) {
        http.inbox.unfinished(&id);
    }
    if body.is_end_stream() {
        http.wire.pool.put(held);
    }
}
