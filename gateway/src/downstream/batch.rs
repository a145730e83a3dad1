//! Arrays of frames, which 2025-03-26 has and no other revision: run side by side, answered as one array.

use super::asked::Answer;
use super::edge::Edge;
use super::legacy::{self, Stream};
use super::peer;
use super::running::Running;
use super::session::Session;
use super::turns::{Turn, Turns};
use crate::call::{Reason, Refusal};
use crate::protocol::frame::Body;
use crate::protocol::meta::Meta;
use crate::protocol::{Era, Frame, Id, Method, Object, Revision};
use bytes::Bytes;
use http::StatusCode;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The most frames in one array.
const FRAMES_MAX: usize = 64;

/// A batch under way.
pub(super) struct Batch(Vec<Slot>);

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
        let begin = |request| Slot::Running(Box::new(legacy::request(edge, session, stream, request)));
        let calls: Vec<_> = self.requests.into_iter().map(begin).collect();
        for (method, params, meta) in self.notifications {
            legacy::notification(edge, session, method, params, meta);
        }
        for (id, body) in self.responses {
            legacy::response(session, id.as_ref(), body);
        }
        (!calls.is_empty()).then_some(Batch(calls))
    }
}

impl Turns for Batch {
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Turn> {
        let mut is_waiting = false;
        for slot in &mut self.0 {
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
        for slot in &self.0 {
            if let Slot::Ended(frame) = slot {
                array.push(if array.is_empty() { b'[' } else { b',' });
                array.extend_from_slice(frame);
            }
        }
        if array.is_empty() {
            return Turn::Cancelled;
        }
        array.push(b']');
        Turn::End(Answer { frame: array, status: StatusCode::OK })
    }
}
