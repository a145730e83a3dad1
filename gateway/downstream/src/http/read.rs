//! Reads a request's body: once, bounded, without a copy where it came in one piece.

use crate::edge::client_era::Who;
use crate::memory::Gather;
use crate::memory::account::{Hold, Kind};
use crate::memory::budget::{Budget, Spent};
use crate::runtime::poll::hold_wakes;
use crate::runtime::timer::Pace;
use bytes::Bytes;
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// Why a body was not read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// It is longer than the limit.
    TooLarge,
    /// Its sender paused for too long.
    TooSlow,
    /// Its sender has as many under way as are its part.
    TooMany,
    /// It ended before its end.
    Broken,
    /// There is no memory for it.
    NoRoom(Spent),
}

impl From<Spent> for Unread {
    fn from(spent: Spent) -> Self {
        Self::NoRoom(spent)
    }
}

/// How a body is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms<'a> {
    /// The most bytes.
    pub(super) max: usize,
    /// The longest pause.
    pub(super) pause: Duration,
    pub(super) budget: &'a Budget,
    /// Whose it is.
    pub(super) who: &'a Who,
}

/// What a first look at a body has found.
pub(super) type Look<B> = Poll<Option<Result<Frame<Bytes>, <B as Body>::Error>>>;

/// A body of this length that is there in one piece, with its end; else what the look has found. Over HTTP/2 the end may come in a frame
/// of its own, and whoever is answered before it was sent is told to stop sending, which not every client takes for an answer.
pub(super) fn at_once<B>(
    body: &mut B,
    length: Option<usize>,
    max: usize,
    cx: &mut Context<'_>,
) -> Result<Bytes, Look<B>>
where
    B: Body<Data = Bytes> + Unpin,
{
    let (look, wake) = hold_wakes(|| Pin::new(&mut *body).poll_frame(cx));
    let Poll::Ready(Some(Ok(frame))) = look else { return Err(look) };
    match frame.into_data() {
        Ok(data) if length == Some(data.len()) && data.len() <= max && body.is_end_stream() => {
            // Nothing more of it is to be read: its connection need not be told to go on.
            wake.forget();
            Ok(data)
        }
        Ok(data) => Err(Poll::Ready(Some(Ok(Frame::data(data))))),
        Err(frame) => Err(Poll::Ready(Some(Ok(frame)))),
    }
}

/// Reads a body of which nothing but the first look was taken; with it, where it is large, what can take it away.
pub(super) async fn body<B>(
    mut body: B,
    look: Look<B>,
    length: Option<usize>,
    terms: Terms<'_>,
) -> Result<(Bytes, Option<Hold>), Unread>
where
    B: Body<Data = Bytes> + Unpin,
{
    let Terms { max, budget, who, .. } = terms;
    let mut look = Some(look);
    let mut first = Bytes::new();
    let mut joined: Option<Box<Gather>> = None;
    let mut pace = Pace::new(terms.pause);
    loop {
        let so_far = joined.as_ref().map_or(first.len(), |joined| joined.len());
        let next = match look.take() {
            Some(Poll::Ready(found)) => found.transpose().map_err(|_| Unread::Broken)?,
            _ => next(&mut body, so_far, &mut pace, joined.as_deref_mut()).await?,
        };
        let Some(frame) = next else { break };
        let Ok(chunk) = frame.into_data() else { continue };
        if chunk.is_empty() {
            continue;
        }
        if so_far + chunk.len() > max {
            return Err(Unread::TooLarge);
        }
        if so_far == 0 {
            first = chunk;
            if length == Some(first.len()) && body.is_end_stream() {
                break;
            }
            continue;
        }
        if joined.is_none() {
            let budget = budget.owned_by(who.share().owner());
            let mut gather = Box::new(Gather::new(&budget, Kind::Body, length.unwrap_or(max)));
            gather.push(&std::mem::take(&mut first))?;
            joined = Some(gather);
        }
        joined.as_mut().map_or(Ok(()), |joined| joined.push(&chunk))?;
    }
    Ok(joined.map_or((first, None), |mut joined| joined.take_held()))
}

/// The next piece. Most are there already: a clock is wound up only for those that are not, from the first such on.
async fn next<B>(
    body: &mut B,
    so_far: usize,
    pace: &mut Pace,
    joined: Option<&mut Gather>,
) -> Result<Option<Frame<Bytes>>, Unread>
where
    B: Body<Data = Bytes> + Unpin,
{
    let ready = std::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut *body).poll_frame(cx))).await;
    let frame = match ready {
        Poll::Ready(frame) => frame,
        Poll::Pending => {
            let came = pace.keep(Some((0, so_far)), async {
                let Some(joined) = joined else { return Ok(body.frame().await) };
                tokio::select! {
                    biased;
                    () = joined.lost() => Err(Unread::NoRoom(Spent::LOST)),
                    frame = body.frame() => Ok(frame),
                }
            });
            came.await.map_err(|_| Unread::TooSlow)??
        }
    };
    frame.transpose().map_err(|_| Unread::Broken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use tokio::time::{Instant, Interval, interval, interval_at};

    /// A body that comes in equal pieces, one a beat; the first one may be another, and there at once.
    struct Beat {
        first: Option<Bytes>,
        is_late: bool,
        beat: Interval,
        size: usize,
    }

    impl Beat {
        fn of(seconds: u64, size: usize) -> Self {
            Self { first: None, is_late: false, beat: interval(Duration::from_secs(seconds)), size }
        }

        fn after(first: usize) -> Self {
            Self { first: Some(vec![b'x'; first].into()), ..Self::of(1, 1) }
        }

        /// The first piece comes after five seconds.
        fn late(first: usize) -> Self {
            let beat = interval_at(Instant::now() + Duration::from_secs(5), Duration::from_secs(1));
            Self { is_late: true, beat, ..Self::after(first) }
        }
    }

    impl Body for Beat {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            if self.is_late || self.first.is_none() {
                std::task::ready!(self.beat.poll_tick(cx));
            }
            let size = self.size;
            let piece = self.first.take().unwrap_or_else(|| vec![b'x'; size].into());
            Poll::Ready(Some(Ok(Frame::data(piece))))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_at_once_after_a_pause_earns_a_body_no_time_to_trickle() {
        let (budget, who) = (Budget::default(), Who::anonymous());
        let terms = Terms { max: 16 << 20, pause: Duration::from_secs(10), budget: &budget, who: &who };
        let begun = Instant::now();
        let read = super::body(Beat::late(15 << 20), Poll::Pending, None, terms).await;
        assert_eq!((read.map(|_| ()), begun.elapsed().as_secs()), (Err(Unread::TooSlow), 15));
    }

    #[tokio::test(start_paused = true)]
    async fn what_came_at_once_earns_a_body_no_time_to_trickle() {
        let (budget, who) = (Budget::default(), Who::anonymous());
        let terms = Terms { max: 16 << 20, pause: Duration::from_secs(10), budget: &budget, who: &who };
        let head = Beat::after(15 << 20);
        let begun = Instant::now();
        assert_eq!(super::body(head, Poll::Pending, None, terms).await.map(|_| ()), Err(Unread::TooSlow));
        assert_eq!((begun.elapsed().as_secs(), budget.used()), (10, 0));
    }

    /// A body that is there at once, whose end comes after five seconds.
    struct LateEnd(Option<Bytes>, Pin<Box<tokio::time::Sleep>>);

    impl Body for LateEnd {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            match self.0.take() {
                Some(data) => Poll::Ready(Some(Ok(Frame::data(data)))),
                None => self.1.as_mut().poll(cx).map(|()| None),
            }
        }

        fn is_end_stream(&self) -> bool {
            self.0.is_none() && self.1.is_elapsed()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_whose_end_comes_in_a_frame_of_its_own_is_read_to_its_end() {
        let (budget, who) = (Budget::default(), Who::anonymous());
        let terms = Terms { max: 1 << 20, pause: Duration::from_secs(10), budget: &budget, who: &who };
        let late = || LateEnd(Some("{}".into()), Box::pin(tokio::time::sleep(Duration::from_secs(5))));
        let (begun, mut body) = (Instant::now(), late());
        let looked = std::future::poll_fn(|cx| Poll::Ready(at_once(&mut body, Some(2), terms.max, cx))).await;
        let look = looked.expect_err("its end is not there");
        let read = super::body(body, look, Some(2), terms).await.map(|(bytes, _)| bytes);
        assert_eq!((read, begun.elapsed().as_secs()), (Ok("{}".into()), 5));
        // Where that was found later, too; and one whose end never comes is given up.
        let read = super::body(late(), Poll::Pending, Some(2), terms).await.map(|(bytes, _)| bytes);
        assert_eq!((read, begun.elapsed().as_secs()), (Ok("{}".into()), 10));
        let never = LateEnd(Some("{}".into()), Box::pin(tokio::time::sleep(Duration::from_secs(600))));
        let read = super::body(never, Poll::Pending, Some(2), terms).await.map(|_| ());
        assert_eq!((read, begun.elapsed().as_secs()), (Err(Unread::TooSlow), 20));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_is_waited_for_gives_way_and_is_told_so() {
        let (budget, who) = (Budget::new(16 << 20), Who::anonymous());
        let terms = Terms { max: 16 << 20, pause: Duration::from_secs(10), budget: &budget, who: &who };
        let hold = tokio::join!(super::body(Beat::after(9 << 20), Poll::Pending, None, terms), async {
            tokio::time::sleep(Duration::from_millis(1500)).await;
            budget.charge(Kind::Line, 5 << 20).map(drop)
        });
        assert_eq!((hold.0.map(|_| ()), hold.1, budget.used()), (Err(Unread::NoRoom(Spent::LOST)), Ok(()), 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_trickles_is_not_waited_for() {
        let (budget, who) = (Budget::default(), Who::anonymous());
        let terms = Terms { max: 1 << 20, pause: Duration::from_secs(10), budget: &budget, who: &who };
        let body = async |body| super::body(body, Poll::Pending, None, terms).await.map(|(bytes, _)| bytes);
        let trickle = Beat::of(1, 1);
        let begun = Instant::now();
        assert_eq!(body(trickle).await, Err(Unread::TooSlow));
        assert_eq!(begun.elapsed().as_secs(), 10);
        // One that is slow and steady is read to its limit, however long that takes.
        let steady = Beat::of(9, 160 * 1024);
        assert_eq!(body(steady).await, Err(Unread::TooLarge));
        assert!(begun.elapsed().as_secs() > 50);
    }
}
