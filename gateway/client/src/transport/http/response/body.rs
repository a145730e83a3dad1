//! What a response's body holds: read whole within a limit, and taken apart.

use crate::health::{Cause, CauseCode};
use crate::memory::Gather;
use crate::memory::account::Kind;
use crate::memory::budget::{Budget, Spent};
use crate::metrics::messages;
use crate::protocol::frame::message::{BATCH_MAX, Body, Frame, FrameFault};
use crate::runtime::aside;
use crate::runtime::poll::hold_wakes;
use crate::runtime::timer::late::within;
use crate::transport::exchange::Lost;
use crate::transport::http::connection::pool::causes;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// How much of a body is read whose response its status alone decides.
const BESIDE_MAX: usize = 64 * 1024;
/// How long the end of such a body is waited for.
const BESIDE_TIME: Duration = Duration::from_secs(1);

/// Whether the response is a stream of events.
pub(crate) fn is_stream(response: &Response<Incoming>) -> bool {
    response.headers().get(CONTENT_TYPE).is_some_and(names_events)
}

/// Whether a content type is that of a stream of events.
pub(crate) fn names_events(kind: &HeaderValue) -> bool {
    kind.as_bytes().get(..17).is_some_and(|start| start.eq_ignore_ascii_case(b"text/event-stream"))
}

/// A whole body, bounded.
pub(crate) async fn collect(mut body: Incoming, max: usize, budget: impl Fn() -> Budget) -> Result<Bytes, Lost> {
    let mut first = Bytes::new();
    let mut more: Option<Box<Gather>> = None;
    // Where the length is known the last piece is the end: there is nothing more to wait for.
    while !body.is_end_stream()
        && let Some(frame) = next(&mut body, more.as_deref_mut()).await?
    {
        let frame = frame.map_err(|error| {
            let said = format!("the connection broke during the response: {}", causes(&error));
            Lost::Unknown(Cause::new(CauseCode::ConnectionLost, said))
        })?;
        let Ok(chunk) = frame.into_data() else { continue };
        let known = more.as_ref().map_or(first.len(), |more| more.len());
        if known + chunk.len() > max {
            let said = format!("the response is larger than {max} bytes");
            return Err(Lost::Odd(Cause::new(CauseCode::ResponseInvalid, said)));
        }
        // An answer in one piece, as most are, is not copied.
        match &mut more {
            Some(more) => more.push(&chunk).map_err(dropped)?,
            None if first.is_empty() => first = chunk,
            None => {
                let max = body.size_hint().upper().map_or(max, |rest| max.min(known + chunk.len() + rest as usize));
                let mut both = Box::new(Gather::new(&budget(), Kind::Line, max));
                both.push(&std::mem::take(&mut first)).map_err(dropped)?;
                both.push(&chunk).map_err(dropped)?;
                more = Some(both);
            }
        }
    }
    Ok(more.map_or(first, |mut more| more.take()))
}

/// The body of a response that its status alone decides; `None` where the body is too large, breaks, or does not end in time.
pub(crate) async fn beside_status(body: Incoming, budget: &Budget) -> Option<Bytes> {
    within(BESIDE_TIME, collect(body, BESIDE_MAX, || budget.clone())).await.ok()?.ok()
}

/// The next piece; what was gathered until then can be taken away meanwhile.
async fn next(
    body: &mut Incoming,
    gather: Option<&mut Gather>,
) -> Result<Option<Result<http_body::Frame<Bytes>, hyper::Error>>, Lost> {
    let Some(gather) = gather else { return Ok(poll_fn(|cx| piece(body, cx)).await) };
    tokio::select! {
        biased;
        () = gather.lost() => Err(dropped(Spent::LOST)),
        frame = body.frame() => Ok(frame),
    }
}

/// A piece; behind the last one the connection need not be told to go on.
fn piece(body: &mut Incoming, cx: &mut Context<'_>) -> Poll<Option<Result<http_body::Frame<Bytes>, hyper::Error>>> {
    let (piece, wake) = hold_wakes(|| Pin::new(&mut *body).poll_frame(cx));
    if piece.is_ready() && body.is_end_stream() {
        wake.forget();
    }
    piece
}

/// A call whose answer finds no memory.
pub(crate) fn dropped(why: Spent) -> Lost {
    Lost::Dropped(Cause::new(CauseCode::MemoryFull, format!("the response was dropped: {why}")))
}

/// The answer in a text that holds one frame or a batch of them, the first where there are more; every other frame is handed over,
/// and what is none is told.
pub(crate) fn one(text: &Bytes, id: u64, beside: &dyn Fn(Frame), odd: &dyn Fn(&FrameFault)) -> Option<Body> {
    let (mut answer, mut nameless) = (None, None);
    let read = |part: &Bytes| aside(part.len(), || Frame::parse(part)).inspect(|_| messages::UPSTREAM.received());
    let mut take = |part: &Bytes| match read(part) {
        Ok(Frame::Response { id: seen, body }) => match seen.as_ref().map(|seen| seen.number()) {
            Some(Some(number)) if number == id && answer.is_none() => answer = Some(body),
            // Who could not read the request cannot name it.
            None if matches!(body, Body::Error(_)) && nameless.is_none() => nameless = Some(body),
            _ => beside(Frame::Response { id: seen, body }),
        },
        Ok(frame) => beside(frame),
        Err(fault) => odd(&fault),
    };
    match Frame::is_batch(text) {
        true => Frame::split(text, BATCH_MAX).inspect_err(odd).ok()?.iter().for_each(take),
        false => take(text),
    }
    answer.or(nameless)
}
