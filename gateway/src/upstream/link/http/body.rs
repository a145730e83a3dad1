//! What a response's body holds: read whole within a limit, and taken apart.

use super::super::slot::Lost;
use super::pool::causes;
use crate::protocol::frame::{Body, Frame};
use bytes::{Bytes, BytesMut};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use smallvec::{SmallVec, smallvec};

/// Whether the response is a stream of events.
pub(super) fn is_stream(response: &Response<Incoming>) -> bool {
    response.headers().get(CONTENT_TYPE).is_some_and(names_events)
}

/// Whether a content type is that of a stream of events.
pub(super) fn names_events(kind: &HeaderValue) -> bool {
    kind.as_bytes().get(..17).is_some_and(|start| start.eq_ignore_ascii_case(b"text/event-stream"))
}

/// A whole body, bounded.
pub(super) async fn collect(mut body: Incoming, max: usize) -> Result<Bytes, Lost> {
    let mut first = Bytes::new();
    let mut more: Option<BytesMut> = None;
    // Where the length is known the last piece is the end: there is nothing more to wait for.
    while !body.is_end_stream()
        && let Some(frame) = body.frame().await
    {
        let frame = frame.map_err(|error| {
            Lost::Unknown(format!("the connection broke within its answer: {}", causes(&error)).into())
        })?;
        let Ok(chunk) = frame.into_data() else { continue };
        let known = more.as_ref().map_or(first.len(), BytesMut::len);
        if known + chunk.len() > max {
            return Err(Lost::Odd(format!("its answer is larger than {max} bytes").into()));
        }
        // An answer in one piece, as most are, is not copied.
        match &mut more {
            Some(more) => more.extend_from_slice(&chunk),
            None if first.is_empty() => first = chunk,
            None => {
                let mut both = BytesMut::with_capacity((first.len() + chunk.len()) * 2);
                both.extend_from_slice(&first);
                both.extend_from_slice(&chunk);
                more = Some(both);
            }
        }
    }
    Ok(more.map_or(first, BytesMut::freeze))
}

/// The answer in a text that holds one frame or a batch of them; every other frame is handed over.
pub(super) fn one(text: &Bytes, id: u64, beside: &dyn Fn(Frame)) -> Option<Body> {
    let parts: SmallVec<[Bytes; 1]> =
        if Frame::is_batch(text) { Frame::split(text).ok()?.into() } else { smallvec![text.clone()] };
    let mut answer = None;
    for part in parts {
        match Frame::parse(&part) {
            Ok(Frame::Response { id: seen, body }) => match seen.as_ref().map(|seen| seen.number()) {
                Some(Some(number)) if number == id => answer = Some(body),
                // Who could not read the request cannot name it.
                None if matches!(body, Body::Error(_)) => answer = answer.or(Some(body)),
                _ => beside(Frame::Response { id: seen, body }),
            },
            Ok(frame) => beside(frame),
            Err(_) => {}
        }
    }
    answer
}
