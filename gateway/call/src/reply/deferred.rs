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
    Reading(Reply, Times),
}

/// How long the upstream had the call, and how long that waited for its turn, in nanoseconds; known at its end.
#[derive(Clone, Default)]
pub(super) struct Times(Arc<[AtomicU64; 2]>);

impl Times {
    pub(super) fn of(&self, which: usize) -> Duration {
        Duration::from_nanos(self.0[which].load(Ordering::Relaxed))
    }
}

impl Guard for Times {
    fn done(&mut self, ending: &Ending<'_>) {
        for (kept, time) in self.0.iter().zip([ending.upstream_time, ending.queue_time]) {
            kept.store(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    }
}

impl Reply {
    /// The reply that a future will give.
    pub fn deferred(future: impl Future<Output = Self> + Send + 'static) -> Self {
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
                    let (reply, time) = (ready!(future.as_mut().poll(cx)), Times::default());
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
            Part::Reading(_, times) => self.waited + times.of(0),
            Part::Waiting(_) => Duration::ZERO,
        }
    }

    fn queue_time(&self) -> Duration {
        match &self.part {
            Part::Reading(_, times) => times.of(1),
            Part::Waiting(_) => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    struct Silent;

    impl Source for Silent {
        fn poll_step(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Step> {
            Poll::Pending
        }

        fn revision(&self) -> Revision {
            Revision::NEWEST_MODERN
        }
    }

    #[tokio::test]
    async fn its_owner_is_known_before_its_first_step() {
        let mut reply = Reply::deferred(async { Reply::live(Silent).owned_by(&"up".into()) });
        assert_eq!(reply.owner(), None, "it waits");
        assert!(reply.poll_step(&mut Context::from_waker(Waker::noop())).is_pending());
        assert_eq!(reply.owner().map(|owner| &**owner), Some("up"));
    }
}
