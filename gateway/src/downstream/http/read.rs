//! Reads a request's body: once, bounded, without a copy where it came in one piece.

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

/// Why a body was not read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// It is longer than the limit.
    TooLarge,
    /// Its sender paused for too long.
    TooSlow,
    /// It ended before its end.
    Broken,
}

/// Reads a body of at most `max` bytes, with pauses of at most `pause`.
pub(super) async fn body<B>(mut body: B, headers: &HeaderMap, max: usize, pause: Duration) -> Result<Bytes, Unread>
where
    B: Body<Data = Bytes> + Unpin,
{
    let length = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if length.is_some_and(|length| length > max) {
        return Err(Unread::TooLarge);
    }
    let mut first = Bytes::new();
    let mut joined: Option<BytesMut> = None;
    while let Some(frame) = next(&mut body, pause).await? {
        let Ok(chunk) = frame.into_data() else { continue };
        let so_far = joined.as_ref().map_or(first.len(), BytesMut::len);
        if so_far + chunk.len() > max {
            return Err(Unread::TooLarge);
        }
        if so_far == 0 {
            first = chunk;
            if length == Some(first.len()) {
                break;
            }
            continue;
        }
        let joined = joined.get_or_insert_with(|| {
            let mut buffer = BytesMut::with_capacity(length.unwrap_or(first.len() + chunk.len()));
            buffer.extend_from_slice(&first);
            buffer
        });
        joined.extend_from_slice(&chunk);
    }
    Ok(joined.map_or(first, BytesMut::freeze))
}

/// The next piece. Most are there already: a clock is wound up only for those that are not.
async fn next<B>(body: &mut B, pause: Duration) -> Result<Option<Frame<Bytes>>, Unread>
where
    B: Body<Data = Bytes> + Unpin,
{
    let ready = std::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut *body).poll_frame(cx))).await;
    let frame = match ready {
        Poll::Ready(frame) => frame,
        Poll::Pending => tokio::time::timeout(pause, body.frame()).await.map_err(|_| Unread::TooSlow)?,
    };
    frame.transpose().map_err(|_| Unread::Broken)
}
