//! Batches: arrays of frames, which 2025-03-26 has and no other revision, and the method `batch`, which no revision has.
//! Run side by side, answered in the shape in which they came. Nothing else needs this file.

use super::asked::Answer;
use super::edge::Edge;
use super::legacy::{self, Stream};
use super::open::OpenCall;
use super::peer;
use super::running::Running;
use super::session::Session;
use super::turns::{Cut, Turn, Turns};
use crate::call::{Reason, Refusal};
use crate::protocol::frame::Body;
use crate::protocol::meta::Meta;
use crate::protocol::{Era, Frame, Id, Method, Object, Revision, frame, json};
use bytes::Bytes;
use http::StatusCode;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The most frames in one array.
const FRAMES_MAX: usize = 64;

/// A batch under way.
pub(super) struct Batch {
    slots: Vec<Slot>,
    shape: Shape,
}

/// How a batch came, and so how it is answered.
enum Shape {
    Array,
    /// As the parameters of a request; a cancellation of that one is of all.
    Method(Id, OpenCall),
}

/// The name of the method.
const METHOD: &str = "batch";

enum Slot {
    Running(Box<Running>),
    Ended(Vec<u8>),
    Cancelled,
}

/// A batch that was looked through and may be begun.
#[derive(Debug)]
pub(super) struct Sound {
    requests: Vec<(Id, Method, Object, Meta)>,
    notifications: Vec<(Method, Object, Meta)>,
    responses: Vec<(Option<Id>, Body)>,
}

/// Whether a request is a batch by its method.
pub(super) fn is_method(method: &Method) -> bool {
    matches!(method, Method::Other(name) if **name == *METHOD)
}

/// Begins the requests of a `batch`, each as if it had come alone.
pub(super) fn begin(
    edge: &Arc<Edge>,
    session: &Arc<Session>,
    stream: Stream,
    (id, params): (&Id, &Object),
) -> Result<Batch, Refusal> {
    let invalid = |why: String| Refusal::new(Reason::InvalidParams, why);
    let list = params.find("requests").map(|raw| params.raw().slice_ref(raw));
    let places = list.as_ref().and_then(|list| json::elements(list).ok());
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
                let meta = legacy_meta(&method, &params)?;
                requests.push((id, method, params, meta));
            }
            _ => return Err(invalid("an element of `requests` is no request with an id and a method".to_owned())),
        }
    }
    let open = session.open.enter(id)?;
    let slots = requests.into_iter().map(|request| slot(edge, session, stream, request)).collect();
    Ok(Batch { slots, shape: Shape::Method(id.clone(), open) })
}

fn tagged(element: Bytes) -> Bytes {
    match element.strip_prefix(b"{") {
        Some(rest) if json::get(&element, "jsonrpc").is_none() => [b"{\"jsonrpc\":\"2.0\",", rest].concat().into(),
        _ => element,
    }
}

fn slot(edge: &Arc<Edge>, session: &Arc<Session>, stream: Stream, request: (Id, Method, Object, Meta)) -> Slot {
    Slot::Running(Box::new(legacy::request(edge, session, stream, request)))
}

/// Whether an array can be a session's at all, whatever that session is: it can be read, and nothing in it or before it
/// names a stateless revision.
pub(super) fn belongs(text: &Bytes, header: Option<&str>) -> Result<(), Refusal> {
    let parts = Frame::split(text).map_err(|fault| {
        let reason = if fault.is_json { Reason::InvalidRequest } else { Reason::Parse };
        Refusal::new(reason, fault.why)
    })?;
    let is_modern = |part: &Bytes| match Frame::parse(part) {
        Ok(Frame::Request { method, params, .. } | Frame::Notification { method, params }) => {
            matches!(peer::see(&method, &params, None), Ok((Era::Modern, _)))
        }
        _ => false,
    };
    if header.is_some_and(peer::is_modern) || parts.iter().take(FRAMES_MAX).any(is_modern) {
        let why = "stateless revisions have no arrays of frames; send one frame at a time";
        return Err(Refusal::new(Reason::InvalidRequest, why));
    }
    Ok(())
}

/// Looks through an array; one bad frame makes all of it bad.
pub(super) fn read(text: &Bytes, revision: Revision) -> Result<Sound, Refusal> {
    let refuse = |why: String| Err(Refusal::new(Reason::InvalidRequest, why));
    let parts = match Frame::split(text) {
        Ok(parts) => parts,
        Err(fault) if fault.is_json => return refuse(fault.why),
        Err(fault) => return Err(Refusal::new(Reason::Parse, fault.why)),
    };
    if revision != Revision::V2025_03_26 {
        return refuse(format!(
            "batches belong to revision 2025-03-26, and this is {revision}; send one frame at a time"
        ));
    }
    if parts.is_empty() || parts.len() > FRAMES_MAX {
        return refuse(format!("a batch holds 1 to {FRAMES_MAX} frames"));
    }
    let mut sound = Sound { requests: Vec::new(), notifications: Vec::new(), responses: Vec::new() };
    for part in &parts {
        match Frame::parse(part) {
            Ok(Frame::Request { method: Method::Initialize, .. }) => {
                return refuse("`initialize` must not be part of a batch".to_owned());
            }
            Ok(Frame::Request { id, method, params }) => {
                let meta = legacy_meta(&method, &params)?;
                sound.requests.push((id, method, params, meta));
            }
            Ok(Frame::Notification { method, params }) => {
                let meta = legacy_meta(&method, &params)?;
                sound.notifications.push((method, params, meta));
            }
            Ok(Frame::Response { id, body }) => sound.responses.push((id, body)),
            Err(fault) => return refuse(format!("a frame of the batch is none: {}", fault.why)),
        }
    }
    Ok(sound)
}

fn legacy_meta(method: &Method, params: &Object) -> Result<Meta, Refusal> {
    match peer::see(method, params, None) {
        Ok((Era::Legacy, meta)) => Ok(meta),
        _ => Err(Refusal::new(Reason::InvalidRequest, "a frame of the batch belongs to another revision")),
    }
}

impl Sound {
    /// Begins what is asked; `None` where nothing is to be answered.
    pub(super) fn begin(self, edge: &Arc<Edge>, session: &Arc<Session>, stream: Stream) -> Option<Batch> {
        let slots: Vec<_> = self.requests.into_iter().map(|request| slot(edge, session, stream, request)).collect();
        for (method, params, meta) in self.notifications {
            legacy::notification(edge, session, method, params, meta);
        }
        for (id, body) in self.responses {
            legacy::response(session, id.as_ref(), body);
        }
        (!slots.is_empty()).then_some(Batch { slots, shape: Shape::Array })
    }
}

impl Sound {
    /// As [`Self::begin`], where nothing may be begun any more: the ids of what will not be.
    pub(super) fn heed(self, edge: &Arc<Edge>, session: &Arc<Session>) -> Vec<Id> {
        let (ids, requests) = (self.requests.iter().map(|(id, ..)| id.clone()).collect(), Vec::new());
        let _nothing_runs = Self { requests, ..self }.begin(edge, session, Stream::Taken);
        ids
    }
}

impl Turns for Batch {
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Turn> {
        if let Shape::Method(_, open) = &self.shape
            && open.poll_cancelled(cx).is_ready()
        {
            return Poll::Ready(Turn::Cancelled);
        }
        let mut is_waiting = false;
        for slot in &mut self.slots {
            let Slot::Running(running) = slot else { continue };
            match running.poll_turn(cx) {
                Poll::Ready(Turn::Event(frame)) => return Poll::Ready(Turn::Event(frame)),
                Poll::Ready(Turn::End(answer)) => *slot = Slot::Ended(answer.frame),
                Poll::Ready(Turn::Cancelled) => *slot = Slot::Cancelled,
                Poll::Pending => is_waiting = true,
            }
        }
        if is_waiting { Poll::Pending } else { Poll::Ready(self.end()) }
    }
}

impl Batch {
    fn end(&mut self) -> Turn {
        let mut array = Vec::new();
        for slot in &self.slots {
            if let Slot::Ended(frame) = slot {
                array.push(if array.is_empty() { b'[' } else { b',' });
                array.extend_from_slice(frame);
            }
        }
        let Shape::Method(id, _) = &self.shape else {
            if array.is_empty() {
                return Turn::Cancelled;
            }
            array.push(b']');
            return Turn::End(Answer { frame: array, status: StatusCode::OK });
        };
        if array.is_empty() {
            array.push(b'[');
        }
        let mut result = b"{\"responses\":".to_vec();
        result.extend_from_slice(&array);
        result.extend_from_slice(b"]}");
        Turn::End(Answer { frame: frame::result(id.raw(), &result).into(), status: StatusCode::OK })
    }
}

impl Cut for Batch {
    fn cut(&mut self) -> Option<Answer> {
        for slot in &mut self.slots {
            if let Slot::Running(running) = slot {
                *slot = running.cut().map_or(Slot::Cancelled, |answer| Slot::Ended(answer.frame));
            }
        }
        match self.end() {
            Turn::End(answer) => Some(answer),
            _ => None,
        }
    }
}
