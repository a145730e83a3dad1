//! A reply that waits before it is known whose it is. It waits by itself: nobody else is behind it.

use super::stream::{Ending, Guard, Reply, Source, Step};
use crate::protocol::revision::Revision;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::Instant;

/// A reply to come.
struct DeferredReply {
    part: Part,
    began: Instant,
    /// Waiting is the upstreams' time, not ours.
    waited: Duration,
}

#[allow(clippy::large_enum_variant, reason = "it lies in the box of its reply already")]
enum Part {
    Waiting(Pin<Box<dyn Future<Output = Reply> + Send>>),
    Reading(Reply, UpstreamTime),
}

/// How long the upstream had the call, in nanoseconds; known at its end.
#[derive(Clone, Default)]
struct UpstreamTime(Arc<AtomicU64>);

impl Guard for UpstreamTime {
    fn done(&mut self, ending: &Ending<'_>) {
        let nanos = u64::try_from(ending.upstream_time.as_nanos()).unwrap_or(u64::MAX);
        self.0.store(nanos, Ordering::Relaxed);
    }
}

impl Reply {
    /// The reply that a future will give.
    pub(crate) fn deferred(future: impl Future<Output = Self> + Send + 'static) -> Self {
        let part = Part::Waiting(Box::pin(future));
        Self::live(DeferredReply { part, began: Instant::now(), waited: Duration::ZERO })
    }
}

impl Source for DeferredReply {
    fn poll_step(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Step> {
        loop {
            match &mut self.part {
                Part::Reading(reply, _) => return reply.poll_step(cx),
                Part::Waiting(future) => {
                    let (reply, time) = (ready!(future.as_mut().poll(cx)), UpstreamTime::default());
                    self.waited = self.began.elapsed();
                    self.part = Part::Reading(reply.attach(Box::new(time.clone())), time);
                }
            }
        }
    }

    fn revision(&self) -> Revision {
        match &self.part {
            Part::Reading(reply, _) => reply.revision(),
            Part::Waiting(_) => Revision::NEWEST_MODERN,
        }
    }

    fn owner(&self) -> Option<&Arc<str>> {
        match &self.part {
            Part::Reading(reply, _) => reply.owner(),
            Part::Waiting(_) => None,
        }
    }

    fn upstream_time(&self) -> Duration {
        match &self.part {
            Part::Reading(_, time) => self.waited + Duration::from_nanos(time.0.load(Ordering::Relaxed)),
            Part::Waiting(_) => Duration::ZERO,
        }
    }
}
