//! Reads a request's body: once, bounded, without a copy where it came in one piece.

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

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

/// A body must come at least so fast, bytes a second, once it has paused; who trickles would hold its place for ever.
const PACE_MIN: u32 = 16 * 1024;

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
    let mut paused = None;
    loop {
        let so_far = joined.as_ref().map_or(first.len(), BytesMut::len);
        let Some(frame) = next(&mut body, pause, so_far, &mut paused).await? else { break };
        let Ok(chunk) = frame.into_data() else { continue };
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

/// The next piece. Most are there already: a clock is wound up only for those that are not, from the first such on.
async fn next<B>(
    body: &mut B,
    pause: Duration,
    so_far: usize,
    paused: &mut Option<Instant>,
) -> Result<Option<Frame<Bytes>>, Unread>
where
    B: Body<Data = Bytes> + Unpin,
{
    let ready = std::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut *body).poll_frame(cx))).await;
    let frame = match ready {
        Poll::Ready(frame) => frame,
        Poll::Pending => {
            let now = Instant::now();
            let earned = Duration::from_secs_f64(so_far as f64 / f64::from(PACE_MIN));
            let last = *paused.get_or_insert(now) + pause + earned;
            timeout_at(last.min(now + pause), body.frame()).await.map_err(|_| Unread::TooSlow)?
        }
    };
    frame.transpose().map_err(|_| Unread::Broken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use std::task::Context;
    use tokio::time::{Interval, interval};

    /// A body that comes in equal pieces, one a beat.
    struct Beat(Interval, usize);

    impl Body for Beat {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            let size = self.1;
            self.0.poll_tick(cx).map(|_| Some(Ok(Frame::data(Bytes::from(vec![b'x'; size])))))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_trickles_is_not_waited_for() {
        let (headers, pause) = (HeaderMap::new(), Duration::from_secs(10));
        let trickle = Beat(interval(Duration::from_secs(1)), 1);
        let begun = Instant::now();
        assert_eq!(body(trickle, &headers, 1 << 20, pause).await, Err(Unread::TooSlow));
        assert_eq!(begun.elapsed().as_secs(), 10);
        // One that is slow and steady is read to its limit, however long that takes.
        let steady = Beat(interval(Duration::from_secs(9)), 160 * 1024);
        assert_eq!(body(steady, &headers, 1 << 20, pause).await, Err(Unread::TooLarge));
        assert!(begun.elapsed().as_secs() > 50);
    }
}
