//! The frames of an array, each read once, and each judged for itself: a bad one takes no other along.

use crate::call::refusal::{Reason, Refusal};
use crate::edge::client_era;
use crate::eras::legacy;
use crate::metrics::messages;
use crate::protocol::frame::Method;
use crate::protocol::frame::message::{Body, Frame, Id};
use crate::protocol::meta::Meta;
use crate::protocol::meta::trace::Carried;
use crate::protocol::revision::{Era, Revision};
use crate::protocol::value::Object;
use crate::protocol::value::spelling::Spots;
use crate::runtime::aside;
use crate::session::client::Session;
use bytes::Bytes;

/// The most frames in one array.
pub(super) const FRAMES_MAX: usize = 64;

/// The frames of an array as they were read.
#[derive(Debug)]
pub(crate) struct Frames(Vec<Part>);

/// One element of an array.
#[derive(Debug)]
struct Part {
    read: Read,
    /// It names a stateless revision.
    is_modern: bool,
}

#[derive(Debug)]
enum Read {
    Answered(Element),
    Notification(Method, Object, Meta),
    Response(Option<Id>, Body),
}

/// An element that is answered.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "nearly every element is a request")]
pub(crate) enum Element {
    /// It may be begun.
    Request(Request),
    /// It cannot be; the id, where it could be read.
    Refused(Option<Id>, Refusal),
}

pub(super) type Request = (Id, Method, Object, Meta);

/// An array that was looked through and may be begun.
#[derive(Debug)]
pub(crate) struct Array {
    /// In their order.
    pub(super) elements: Vec<Element>,
    pub(super) notifications: Vec<(Method, Object, Meta)>,
    pub(super) responses: Vec<(Option<Id>, Body)>,
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

    /// Looks through the array. It is refused whole where this revision has none, or nothing is in it.
    pub(crate) fn judge(self, revision: Revision) -> Result<Array, Refusal> {
        let refuse = |why: String| Err(Refusal::new(Reason::InvalidRequest, why));
        if revision != Revision::V2025_03_26 {
            return refuse(format!(
                "batches belong to revision 2025-03-26, and this is {revision}; send one frame at a time"
            ));
        }
        if self.0.is_empty() {
            return refuse(format!("a batch holds 1 to {FRAMES_MAX} frames"));
        }
        let mut array = Array { elements: Vec::new(), notifications: Vec::new(), responses: Vec::new() };
        for part in self.0 {
            match part.read {
                Read::Answered(element) => {
                    let element = element.unless_named(&array.elements);
                    array.elements.push(element);
                }
                Read::Notification(method, params, meta) => array.notifications.push((method, params, meta)),
                Read::Response(id, Body::Neither) => {
                    // Where it was meant to answer a question, nothing better will come; where it asks one, its sender waits.
                    array.elements.push(Element::Refused(id.clone(), client_era::meaningless()));
                    array.responses.push((id, Body::Neither));
                }
                Read::Response(id, body) => array.responses.push((id, body)),
            }
        }
        Ok(array)
    }
}

impl Element {
    /// The element, or its refusal where one before it has the same id: their answers stand side by side.
    fn unless_named(self, before: &[Self]) -> Self {
        let is_named = |id: &Id| before.iter().any(|one| matches!(one, Self::Request((other, ..)) if other == id));
        match self {
            Self::Request((id, ..)) if is_named(&id) => {
                let why = "another request of the batch has the same `id`";
                Self::Refused(Some(id), Refusal::new(Reason::InvalidRequest, why))
            }
            element => element,
        }
    }
}

impl Part {
    fn read(text: &Bytes) -> Self {
        let refused = |id, refusal| Self { read: Read::Answered(Element::Refused(id, refusal)), is_modern: false };
        let mut noted = Spots::default();
        let read = Frame::noting(text, &mut noted).inspect(|_| messages::CLIENT.received());
        let (id, method, params) = match read {
            Ok(Frame::Request { id, method, params }) => (Some(id), method, params),
            Ok(Frame::Notification { method, params }) => (None, method, params),
            Ok(Frame::Response { id, body }) => return Self { read: Read::Response(id, body), is_modern: false },
            Err(fault) => return refused(fault.id.clone(), client_era::unread(fault)),
        };
        let seen = client_era::see(&method, (&params, &noted), None);
        let is_modern = matches!(seen, Ok((Era::Modern, _)));
        if id.is_some() && method == Method::Initialize {
            let why = "`initialize` must not be part of a batch";
            return Self { is_modern, ..refused(id, Refusal::new(Reason::InvalidRequest, why)) };
        }
        match (id, legacy_meta(seen)) {
            (Some(id), Ok(meta)) => {
                Self { read: Read::Answered(Element::Request((id, method, params, meta))), is_modern }
            }
            (None, Ok(meta)) => Self { read: Read::Notification(method, params, meta), is_modern },
            (id, Err(refusal)) => Self { is_modern, ..refused(id, refusal) },
        }
    }
}

/// The `_meta` of a frame of a batch: those are of the handshake's era.
pub(super) fn legacy_meta(seen: Result<(Era, Meta), Refusal>) -> Result<Meta, Refusal> {
    match seen? {
        (Era::Legacy, meta) => Ok(meta),
        _ => Err(Refusal::new(Reason::InvalidRequest, "a frame of the batch belongs to another revision")),
    }
}

impl Array {
    /// The array as what a request with this trace context has brought.
    pub(crate) fn caused_by(mut self, ambient: Option<&Carried>) -> Self {
        let Some(ambient) = ambient else { return self };
        let requests = self.elements.iter_mut().filter_map(|one| match one {
            Element::Request((.., meta)) => Some(meta),
            Element::Refused(..) => None,
        });
        for meta in requests.chain(self.notifications.iter_mut().map(|(.., meta)| meta)) {
            meta.ambient = Some(Box::new(ambient.clone()));
        }
        self
    }

    /// Hands the responses over. A refused one becomes an element, whose error has no id.
    pub(crate) fn deliver_responses(mut self, session: &Session) -> Self {
        for (id, body) in std::mem::take(&mut self.responses) {
            if let Err(refusal) = legacy::response(session, id.as_ref(), body) {
                self.elements.push(Element::Refused(None, refusal));
            }
        }
        self
    }

    /// Whether anything in it is to be begun.
    pub(super) fn asks(&self) -> bool {
        self.elements.iter().any(|element| matches!(element, Element::Request(_)))
    }

    /// The same where nothing may be begun any more: every request is refused so.
    pub(crate) fn without_requests(self, why: impl Fn() -> Refusal) -> Self {
        let refuse = |element| match element {
            Element::Request((id, ..)) => Element::Refused(Some(id), why()),
            refused => refused,
        };
        Self { elements: self.elements.into_iter().map(refuse).collect(), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Tasks;
    use std::sync::Arc;
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
            assert_eq!(frames.judge(Revision::V2025_03_26).unwrap().elements.len(), 4);
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
