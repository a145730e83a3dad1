//! A reply whose steps are edited on the way, where needed beside the workers. It gives no step before those ahead of it.

use super::deferred::Times;
use super::stream::{Reply, Source, Step};
use crate::protocol::revision::Revision;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// What an edit makes of a step.
pub enum Edit {
    /// The step as it goes on.
    Ready(Step),
    /// The step is edited elsewhere; `None` leaves it out. Dropping the reply drops the future.
    Pending(Pin<Box<dyn Future<Output = Option<Step>> + Send>>),
}

struct EditedReply<F> {
    reply: Reply,
    times: Times,
    edit: F,
    pending: Option<Pin<Box<dyn Future<Output = Option<Step>> + Send>>>,
}

impl Reply {
    /// The reply with each step edited.
    pub fn edited(self, edit: impl FnMut(Step, Option<&Arc<str>>) -> Edit + Send + Unpin + 'static) -> Self {
        let times = Times::default();
        let reply = self.attach(Box::new(times.clone()));
        Self::live(EditedReply { reply, times, edit, pending: None })
    }
}

impl<F: FnMut(Step, Option<&Arc<str>>) -> Edit + Send + Unpin> Source for EditedReply<F> {
    fn poll_step(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Step> {
        let this = &mut *self;
        loop {
            if let Some(pending) = &mut this.pending {
                let step = ready!(pending.as_mut().poll(cx));
                this.pending = None;
                if let Some(step) = step {
                    return Poll::Ready(step);
                }
            }
            let step = ready!(this.reply.poll_step(cx));
            match (this.edit)(step, this.reply.owner()) {
                Edit::Ready(step) => return Poll::Ready(step),
                Edit::Pending(future) => this.pending = Some(future),
            }
        }
    }

    fn revision(&self) -> Revision {
        self.reply.revision()
    }

    fn owner(&self) -> Option<&Arc<str>> {
        self.reply.owner()
    }

    fn upstream_time(&self) -> Duration {
        self.times.of(0)
    }

    fn queue_time(&self) -> Duration {
        self.times.of(1)
    }
}
