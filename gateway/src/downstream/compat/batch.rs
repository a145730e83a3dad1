//! Batches: arrays of frames, which 2025-03-26 has and no other revision, and the method `batch`, which no revision has.
//! Run side by side, answered in the shape in which they came. Nothing else needs this file.

use crate::call::refusal::{Reason, Refusal};
use crate::downstream::edge::open_calls::OpenCall;
use crate::downstream::edge::{Edge, Stream, client_era, legacy};
use crate::downstream::response::EncodedResponse;
use crate::downstream::running::{Cut, RunningCall, StepQueue, Turn};
use crate::downstream::session::client::Session;
use crate::memory::Composed;
use crate::memory::account::Hold;
use crate::protocol::frame::Method;
use crate::protocol::frame::message::{Body, Frame, Id};
use crate::protocol::meta::Meta;
use crate::protocol::revision::{Era, Revision};
use crate::protocol::value::Object;
use crate::protocol::{frame, json};
use crate::runtime::aside;
use bytes::{BufMut, Bytes};
use http::StatusCode;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The most frames in one array.
const FRAMES_MAX: usize = 64;

/// A batch under way.
pub(crate) struct Batch {
    slots: Vec<Slot>,
    shape: Shape,
    /// What can take the memory of a large array away.
    held: Option<Hold>,
}

/// How a batch came, and so how it is answered.
enum Shape {
    Array,
    /// As the parameters of a request; a cancellation of that one is of all.
    Method(Id, OpenCall),
}

/// What stands around the answers of a batch, at most.
const AROUND: usize = 128;

/// The name of the method.
const METHOD: &str = "batch";

enum Slot {
    Running(RunningCall),
    Ended(EncodedResponse),
    Cancelled,
}

/// The frames of an array, each read once.
#[derive(Debug)]
pub(crate) struct Frames(Vec<Part>);

/// One element of an array.
#[derive(Debug)]
struct Part {
    read: Result<Read, Refusal>,
    /// It names a stateless revision.
    is_modern: bool,
}

#[derive(Debug)]
enum Read {
    Request(Request),
    Notification(Method, Object, Meta),
    Response(Option<Id>, Body),
}

type Request = (Id, Method, Object, Meta);

/// A batch that was looked through and may be begun.
#[derive(Debug)]
pub(crate) struct Sound {
    requests: Vec<Request>,
    notifications: Vec<(Method, Object, Meta)>,
    responses: Vec<(Option<Id>, Body)>,
}

/// Whether a request is a batch by its method.
pub(crate) fn is_method(method: &Method) -> bool {
    matches!(method, Method::Other(name) if **name == *METHOD)
}

/// Begins the requests of a `batch`, each as if it had come alone.
pub(crate) fn begin(
    edge: &Arc<Edge>,
    session: &Arc<Session>,
    stream: Stream,
    (id, params): (&Id, &Object),
) -> Result<Batch, Refusal> {
    let requests = aside(params.raw().len(), || requests_of(params))?;
    let open = session.open.enter(id)?;
    let slots = requests.into_iter().map(|request| slot(edge, session, stream, request)).collect();
    Ok(Batch { slots, shape: Shape::Method(id.clone(), open), held: None })
}

/// The requests of a `batch`.
fn requests_of(params: &Object) -> Result<Vec<Request>, Refusal> {
    let invalid = |why: String| Refusal::new(Reason::InvalidParams, why);
    let list = params.find("requests").map(|raw| params.raw().slice_ref(raw));
    let places = list.as_ref().and_then(|list| json::elements_up_to(FRAMES_MAX + 1, list).ok());
    let (Some(list), Some(places)) = (list, places) else {
        return Err(invalid("`requests` must be an array of requests".to_owned()));
    };
    if places.is_empty() || places.len() > FRAMES_MAX {
        return Err(invalid(format!("a batch holds 1 to {FRAMES_MAX} requests")));
    }
    let mut requests = Vec::new();
    for place in places {
        // Those who use this form leave the version tag out.
        match Frame::parse(&tagged(list.slice(place))) {
            Ok(Frame::Request { method: Method::Initialize, .. }) => {
                return Err(invalid("`initialize` must not be part of a batch".to_owned()));
            }
            Ok(Frame::Request { method, .. }) if is_method(&method) => {
                return Err(invalid("a batch must not be part of a batch".to_owned()));
            }
            Ok(Frame::Request { id, method, params }) => {
                let meta = legacy_meta(client_era::see(&method, &params, None))?;
                requests.push((id, method, params, meta));
            }
            _ => return Err(invalid("an element of `requests` is no request with an id and a method".to_owned())),
        }
    }
    Ok(requests)
}

fn tagged(element: Bytes) -> Bytes {
    match element.strip_prefix(b"{") {
        Some(rest) if json::get(&element, "jsonrpc").is_none() => [b"{\"jsonrpc\":\"2.0\",", rest].concat().into(),
        _ => element,
    }
}

fn slot(edge: &Arc<Edge>, session: &Arc<Session>, stream: Stream, request: Request) -> Slot {
    Slot::Running(legacy::request(edge, session, stream, request))
}

impl Frames {
    /// Reads an array: once, and beside the workers where it is large.
    pub(crate) fn read(text: &Bytes) -> Result<Self, Refusal> {
        let read = || {
            let parts = Frame::split(text, FRAMES_MAX).map_err(client_era::unread)?;
            Ok(Self(parts.iter().map(Part::read).collect()))
        };
        aside(text.len(), read)
    }

    /// Whether the array can be a session's at all, whatever that session is: nothing in it or before it names a stateless revision.
    pub(crate) fn belongs(&self, header: Option<&str>) -> Result<(), Refusal> {
        if header.is_some_and(client_era::is_modern) || self.0.iter().any(|part| part.is_modern) {
            let why = "stateless revisions have no arrays of frames; send one frame at a time";
            return Err(Refusal::new(Reason::InvalidRequest, why));
        }
        Ok(())
    }

    /// Looks through the array; one bad frame makes all of it bad.
    pub(crate) fn judge(self, revision: Revision) -> Result<Sound, Refusal> {
        let refuse = |why: String| Err(Refusal::new(Reason::InvalidRequest, why));
        if revision != Revision::V2025_03_26 {
            return refuse(format!(
                "batches belong to revision 2025-03-26, and this is {revision}; send one frame at a time"
            ));
        }
        if self.0.is_empty() {
            return refuse(format!("a batch holds 1 to {FRAMES_MAX} frames"));
        }
        let mut sound = Sound { requests: Vec::new(), notifications: Vec::new(), responses: Vec::new() };
        for part in self.0 {
            match part.read? {
                Read::Request(request) => sound.requests.push(request),
                Read::Notification(method, params, meta) => sound.notifications.push((method, params, meta)),
                Read::Response(id, body) => sound.responses.push((id, body)),
            }
        }
        Ok(sound)
    }
}

impl Part {
    fn read(text: &Bytes) -> Self {
        let refused = |why: String| Self { read: Err(Refusal::new(Reason::InvalidRequest, why)), is_modern: false };
        let (id, method, params) = match Frame::parse(text) {
            Ok(Frame::Request { id, method, params }) => (Some(id), method, params),
            Ok(Frame::Notification { method, params }) => (None, method, params),
            Ok(Frame::Response { id, body }) => return Self { read: Ok(Read::Response(id, body)), is_modern: false },
            Err(fault) => return refused(format!("a frame of the batch is none: {}", fault.why)),
        };
        let seen = client_era::see(&method, &params, None);
        let is_modern = matches!(seen, Ok((Era::Modern, _)));
        if id.is_some() && method == Method::Initialize {
            return Self { is_modern, ..refused("`initialize` must not be part of a batch".to_owned()) };
        }
        let read = legacy_meta(seen).map(|meta| match id {
            Some(id) => Read::Request((id, method, params, meta)),
            None => Read::Notification(method, params, meta),
        });
        Self { read, is_modern }
    }
}

fn legacy_meta(seen: Result<(Era, Meta), Refusal>) -> Result<Meta, Refusal> {
    match seen {
        Ok((Era::Legacy, meta)) => Ok(meta),
        _ => Err(Refusal::new(Reason::InvalidRequest, "a frame of the batch belongs to another revision")),
    }
}

impl Sound {
    /// Begins what is asked; `None` where nothing is to be answered.
    pub(crate) fn begin(self, edge: &Arc<Edge>, session: &Arc<Session>, stream: Stream) -> Option<Batch> {
        let slots: Vec<_> = self.requests.into_iter().map(|request| slot(edge, session, stream, request)).collect();
        for (method, params, meta) in self.notifications {
            legacy::notification(edge, session, method, params, meta);
        }
        for (id, body) in self.responses {
            legacy::response(session, id.as_ref(), body);
        }
        (!slots.is_empty()).then_some(Batch { slots, shape: Shape::Array, held: None })
    }
}

impl Sound {
    /// As [`Self::begin`], where nothing may be begun any more: the ids of what will not be.
    pub(crate) fn heed(self, edge: &Arc<Edge>, session: &Arc<Session>) -> Vec<Id> {
        let (ids, requests) = (self.requests.iter().map(|(id, ..)| id.clone()).collect(), Vec::new());
        let _nothing_runs = Self { requests, ..self }.begin(edge, session, Stream::Taken);
        ids
    }
}

impl StepQueue for Batch {
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Turn> {
        if let Shape::Method(_, open) = &self.shape
            && open.poll_cancelled(cx).is_ready()
        {
            return Poll::Ready(Turn::Cancelled);
        }
        if self.held.as_ref().is_some_and(|held| held.poll_lost(cx).is_ready()) {
            return Poll::Ready(self.lost());
        }
        let mut is_waiting = false;
        for slot in &mut self.slots {
            let Slot::Running(running) = slot else { continue };
            match running.poll_turn(cx) {
                Poll::Ready(Turn::Event(frame)) => return Poll::Ready(Turn::Event(frame)),
                Poll::Ready(Turn::End(answer)) => *slot = Slot::Ended(answer),
                Poll::Ready(Turn::Cancelled) => *slot = Slot::Cancelled,
                Poll::Pending => is_waiting = true,
            }
        }
        if is_waiting { Poll::Pending } else { Poll::Ready(self.end()) }
    }
}

impl Batch {
    /// It can be ended for the memory that it takes.
    pub(crate) fn hold(&mut self, held: Option<Hold>) {
        self.held = held;
    }

    /// Its memory is taken away: what still runs is dropped, and so cancelled.
    fn lost(&mut self) -> Turn {
        for slot in &mut self.slots {
            if let Slot::Running(running) = slot {
                *slot = Slot::Ended(running.lost());
            }
        }
        self.end()
    }

    fn end(&mut self) -> Turn {
        if matches!(self.shape, Shape::Array) && self.ended().next().is_none() {
            return Turn::Cancelled;
        }
        let id = if let Shape::Method(id, _) = &self.shape { id.raw().len() } else { 0 };
        let most = self.ended().map(|frame| frame.len() + 1).sum::<usize>() + id + AROUND;
        let frame = if Composed::is_large(most) {
            aside(most, || Composed::large(most, |out| self.write(out)))
        } else {
            let mut out = Vec::with_capacity(most);
            self.write(&mut out);
            out.into()
        };
        Turn::End(EncodedResponse::new(frame, StatusCode::OK))
    }

    fn write<B: BufMut>(&self, out: &mut B) {
        if let Shape::Method(id, _) = &self.shape {
            frame::message::open_result(id.raw(), out);
            out.put_slice(b"{\"responses\":");
        }
        out.put_u8(b'[');
        for (at, frame) in self.ended().enumerate() {
            if at > 0 {
                out.put_u8(b',');
            }
            out.put_slice(frame);
        }
        out.put_u8(b']');
        if let Shape::Method(..) = &self.shape {
            out.put_u8(b'}');
            frame::message::close(out);
        }
    }

    fn ended(&self) -> impl Iterator<Item = &[u8]> {
        self.slots
            .iter()
            .filter_map(|slot| if let Slot::Ended(answer) = slot { Some(answer.frame.as_ref()) } else { None })
    }
}

impl Cut for Batch {
    fn cut(&mut self) -> Option<EncodedResponse> {
        for slot in &mut self.slots {
            if let Slot::Running(running) = slot {
                *slot = running.cut().map_or(Slot::Cancelled, Slot::Ended);
            }
        }
        match self.end() {
            Turn::End(answer) => Some(answer),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Tasks;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// An array of so many frames of so many bytes each.
    fn array(frames: usize, bytes: usize) -> Bytes {
        let frame = |id| {
            let text = "[1],".repeat(bytes / 4);
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t","arguments":{{"a":[{text}0]}}}}}}"#
            )
        };
        format!("[{}]", (0..frames).map(frame).collect::<Vec<_>>().join(",")).into()
    }

    #[test]
    fn an_array_is_read_once() {
        let text = array(4, 40_000);
        let steps = |read: &dyn Fn()| crate::steps::of(read).unwrap_or_default();
        let once = steps(&|| {
            let parts = Frame::split(&text, FRAMES_MAX).unwrap();
            parts.iter().for_each(|part| drop(Part::read(part)));
        });
        let judged = steps(&|| {
            let frames = Frames::read(&text).unwrap();
            frames.belongs(None).unwrap();
            assert_eq!(frames.judge(Revision::V2025_03_26).unwrap().requests.len(), 4);
        });
        assert!(once >= 160_000 && judged == once, "{judged} steps, {once} for reading it once");
    }

    /// The one worker reads a large array, and another task of it goes on meanwhile.
    #[test]
    fn a_large_array_is_read_beside_the_workers() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (level, ticks) = (Tasks::new(), Arc::new(AtomicUsize::new(0)));
        let _entered = runtime.enter();
        level.spawn_until_end({
            let ticks = ticks.clone();
            async move {
                loop {
                    ticks.fetch_add(1, Ordering::SeqCst);
                    tokio::task::yield_now().await;
                }
            }
        });
        let (told, heard) = std::sync::mpsc::channel();
        level.spawn_until_end(async move {
            let text = array(8, 500_000);
            tokio::task::yield_now().await;
            let before = ticks.load(Ordering::SeqCst);
            assert_eq!(Frames::read(&text).unwrap().0.len(), 8);
            told.send((before, ticks.load(Ordering::SeqCst))).unwrap();
        });
        let (before, after) = heard.recv().unwrap();
        level.end();
        runtime.block_on(level.ended());
        assert!(before > 0 && after > before, "nothing else ran: {before}, then {after}");
    }
}
