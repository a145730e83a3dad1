//! A reply that waits before it is known whose it is. It waits by itself: nobody else is behind it.

use super::timing::Stopwatch;
use crate::call::reply::{Reply, Source, Step};
use crate::protocol::revision::Revision;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::Instant;

/// A reply to come.
pub(crate) struct DeferredReply {
    part: Part,
    began: Instant,
    /// Waiting is the upstreams' time, not ours.
    waited: Duration,
}

#[allow(clippy::large_enum_variant, reason = "it lies in the box of its reply already")]
enum Part {
    Waiting(Pin<Box<dyn Future<Output = Reply> + Send>>),
    Reading(Reply, Stopwatch),
}

impl DeferredReply {
    /// The reply that a future will give.
    pub(crate) fn reply(future: impl Future<Output = Reply> + Send + 'static) -> Reply {
        Reply::live(Self { part: Part::Waiting(Box::pin(future)), began: Instant::now(), waited: Duration::ZERO })
    }
}

impl Source for DeferredReply {
    fn poll_step(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Step> {
        loop {
            match &mut self.part {
                Part::Reading(reply, _) => return reply.poll_step(cx),
                Part::Waiting(future) => {
                    let (reply, watch) = Stopwatch::on(ready!(future.as_mut().poll(cx)));
                    self.waited = self.began.elapsed();
                    self.part = Part::Reading(reply, watch);
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
            Part::Reading(_, watch) => self.waited + watch.time(),
            Part::Waiting(_) => Duration::ZERO,
        }
    }
}
