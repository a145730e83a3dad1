//! Batches: arrays of frames, which 2025-03-26 has and no other revision, and the method `batch`, which no revision has.
//! Run side by side, answered in the shape in which they came. Nothing else needs this file.

mod array;

use super::legacy::{self, Stream};
use crate::call::refusal::{Reason, Refusal};
use crate::call::share::Abandoned;
use crate::edge::open_calls::OpenCall;
use crate::edge::{Edge, client_era};
use crate::memory::account::{Hold, Kind};
use crate::memory::budget::{Budget, Spent, UNCOUNTED};
use crate::memory::{Composed, charged, joined};
use crate::metrics::messages;
use crate::protocol::frame::Method;
use crate::protocol::frame::message::{Frame, Id};
use crate::protocol::revision::Revision;
use crate::protocol::value::Object;
use crate::protocol::value::spelling::Spots;
use crate::protocol::{frame, json};
use crate::response::EncodedResponse;
use crate::response::steps::{Cut, Lose, Lost, StepQueue, Turn};
use crate::running::RunningCall;
use crate::runtime::aside;
use crate::session::client::Requester;
use bytes::{BufMut, Bytes};
use http::StatusCode;
use std::sync::Arc;
use std::task::{Context, Poll};

pub(crate) use array::{Array, Element, Frames};
use array::{FRAMES_MAX, Request, legacy_meta};

/// A batch under way.
pub(crate) struct Batch {
    slots: Vec<Slot>,
    shape: Shape,
    /// What can take the memory of a large array away.
    held: Option<Hold>,
    /// The client's.
    budget: Budget,
}

/// How a batch came, and so how it is answered.
enum Shape {
    /// As an array, answered with this status.
    Array(StatusCode),
    /// As the parameters of a request; a cancellation of that one is of all.
    Method(Id, Option<OpenCall>),
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

/// Whether a request is a batch by its method.
pub(crate) fn is_method(method: &Method) -> bool {
    matches!(method, Method::Other(name) if **name == *METHOD)
}

/// Begins the requests of a `batch`, each as if it had come alone.
pub(crate) fn begin(
    edge: &Arc<Edge>,
    requester: &Requester,
    stream: Stream,
    (id, params): (&Id, &Object),
) -> Result<Batch, Refusal> {
    let session = &requester.session;
    let budget = edge.budget.owned_by(session.caller().share().owner());
    let requests = aside(params.raw().len(), || requests_of(params, &budget))?;
    let open = session.open.enter(id)?;
    let slots = requests.into_iter().map(|request| slot(edge, requester, stream, request)).collect();
    Ok(Batch { slots, shape: Shape::Method(id.clone(), Some(open)), held: None, budget })
}

/// The requests of a `batch`.
fn requests_of(params: &Object, budget: &Budget) -> Result<Vec<Request>, Refusal> {
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
        match Frame::parse(&tagged(list.slice(place), budget)?) {
            Ok(Frame::Request { method: Method::Initialize, .. }) => {
                return Err(invalid("`initialize` must not be part of a batch".to_owned()));
            }
            Ok(Frame::Request { method, .. }) if is_method(&method) => {
                return Err(invalid("a batch must not be part of a batch".to_owned()));
            }
            Ok(Frame::Request { id, method, params }) => {
                let meta = legacy_meta(client_era::see(&method, (&params, &Spots::default()), None))?;
                requests.push((id, method, params, meta));
            }
            _ => return Err(invalid("an element of `requests` is no request with an id and a method".to_owned())),
        }
    }
    Ok(requests)
}

fn tagged(element: Bytes, budget: &Budget) -> Result<Bytes, Refusal> {
    let Some(rest) = element.strip_prefix(b"{").filter(|_| json::get(&element, "jsonrpc").is_none()) else {
        return Ok(element);
    };
    let parts: [&[u8]; 2] = [b"{\"jsonrpc\":\"2.0\",", rest];
    // It is a copy, beside the one that was read.
    match budget.charge(Kind::Body, parts.iter().map(|part| part.len()).sum()) {
        Ok(charge) => Ok(charged(joined(&parts), charge)),
        Err(spent) => Err(Refusal::new(Reason::Busy, format!("the batch was dropped: {spent}; try again with less"))),
    }
}

fn slot(edge: &Arc<Edge>, requester: &Requester, stream: Stream, request: Request) -> Slot {
    Slot::Running(legacy::request(edge, requester, stream, request))
}

impl Batch {
    /// Begins what an array asks; `None` where nothing is to be answered.
    pub(crate) fn of_array(edge: &Arc<Edge>, requester: &Requester, stream: Stream, array: Array) -> Option<Self> {
        let session = &requester.session;
        let status = if array.asks() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
        let slots: Vec<_> = array.elements.into_iter().map(|one| begun(one, edge, requester, stream)).collect();
        for (method, params, meta) in array.notifications {
            legacy::notification(edge, requester, method, params, meta);
        }
        for (id, body) in array.responses {
            // Over stdio a response has no answer.
            let _refused = legacy::response(session, id.as_ref(), body);
        }
        let budget = edge.budget.owned_by(session.caller().share().owner());
        (!slots.is_empty()).then_some(Self { slots, shape: Shape::Array(status), held: None, budget })
    }
}

/// Begins an element, or refuses it for itself.
fn begun(element: Element, edge: &Arc<Edge>, requester: &Requester, stream: Stream) -> Slot {
    let session = &requester.session;
    let (id, refusal) = match element {
        Element::Request(request) => match session.open.admits(&request.0) {
            Ok(()) => return slot(edge, requester, stream, request),
            Err(refusal) => (Some(request.0), refusal),
        },
        Element::Refused(id, refusal) => (id, refusal),
    };
    let error = refusal.to_rpc(session.revision());
    let text = frame::message::error(id.as_ref().map(|id| &id.raw()[..]), error.raw());
    Slot::Ended(EncodedResponse::new(text, StatusCode::BAD_REQUEST))
}

impl StepQueue for Batch {
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Turn> {
        if let Shape::Method(_, Some(open)) = &self.shape
            && open.poll_cancelled(cx).is_ready()
        {
            return Poll::Ready(Turn::Cancelled);
        }
        if self.held.as_ref().is_some_and(|held| held.poll_lost(cx).is_ready()) {
            return Poll::Ready(self.lost(Lost::Memory));
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

    /// It is given up: what still runs is dropped, and so cancelled.
    fn lost(&mut self, why: Lost) -> Turn {
        for slot in &mut self.slots {
            if let Slot::Running(running) = slot {
                *slot = running.lose(why).map_or(Slot::Cancelled, Slot::Ended);
            }
        }
        self.end()
    }

    fn end(&mut self) -> Turn {
        if matches!(self.shape, Shape::Array(_)) && self.ended().next().is_none() {
            return Turn::Cancelled;
        }
        let status = match &mut self.shape {
            Shape::Method(_, open) => {
                // Before the answer is written: its client may use the id again as soon as it has that.
                *open = None;
                StatusCode::OK
            }
            Shape::Array(status) => *status,
        };
        if matches!(self.shape, Shape::Array(_)) {
            messages::CLIENT.sent_with_it(self.ended().count() - 1);
        }
        // All answers once more: the ones that it is made of are counted until it is written.
        let charge = self.budget.charge(Kind::Answer, self.room()).or_else(|spent| {
            self.drop_large(spent);
            self.budget.charge(Kind::Answer, self.room())
        });
        let frame = Composed::of(self.room(), |out| self.write(out));
        self.slots.clear();
        // Where there is no room for what is small either, it is at most a few KiB for each.
        Turn::End(EncodedResponse { charge: charge.unwrap_or_default(), ..EncodedResponse::new(frame, status) })
    }

    /// How long the whole answer is, at most.
    fn room(&self) -> usize {
        let id = if let Shape::Method(id, _) = &self.shape { id.raw().len() } else { 0 };
        self.ended().map(|frame| frame.len() + 1).sum::<usize>() + id + AROUND
    }

    /// Puts a word in place of each large answer.
    fn drop_large(&mut self, spent: Spent) {
        for slot in &mut self.slots {
            let Slot::Ended(answer) = slot else { continue };
            let frame = answer.frame.as_ref();
            if frame.len() > UNCOUNTED {
                let bytes = frame.len();
                let why = format!("the call was answered with {bytes} bytes, and the answer was dropped: {spent}");
                let error = Refusal::new(Reason::OutcomeUnknown, why).to_rpc(Revision::V2025_03_26);
                let frame = frame::message::error(json::get(frame, "id"), error.raw());
                *answer = EncodedResponse::new(frame, StatusCode::OK);
            }
        }
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

impl Lose for Batch {
    fn lose(&mut self, why: Lost) -> Option<EncodedResponse> {
        match self.lost(why) {
            Turn::End(answer) => Some(answer),
            _ => None,
        }
    }

    fn abandon(&mut self, call: &Arc<Abandoned>) {
        for slot in &mut self.slots {
            if let Slot::Running(running) = slot {
                running.abandon(call);
            }
        }
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
mod tests;
