//! Tells the caller of a refused call where its person can log in.

use super::pages::{Connect, RETRY_WAITS};
use crate::call::caller::Caller;
use crate::call::refusal::Reason;
use crate::call::reply::{Ending, Failure, Guard, Outcome, Reply, Step};
use crate::call::{Call, Handle};
use crate::protocol::frame::Method;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::time::timeout;

impl<H: Handle> tower::Layer<H> for Connect {
    type Service = Sending<H>;

    fn layer(&self, inner: H) -> Sending<H> {
        Sending { inner: Arc::new(inner), connect: self.clone() }
    }
}

/// See [`Connect`].
pub struct Sending<H> {
    inner: Arc<H>,
    connect: Connect,
}

impl<H: Handle> Handle for Sending<H> {
    fn handle(&self, call: Call) -> Reply {
        let is_sent = matches!(call.method, Method::ToolsCall | Method::PromptsGet | Method::ResourcesRead);
        // Nothing is noted of the calls of all others.
        if !is_sent || !self.connect.can_send(&call.caller) {
            return self.inner.handle(call);
        }
        let sender = Sender { connect: self.connect.clone(), caller: call.caller.clone() };
        // Whoever was sent to a page and says that it will be visited calls again at once.
        let over = call.bound_to.as_ref().and_then(|upstream| self.connect.over(&call.caller, upstream));
        let reply = match over {
            None => self.inner.handle(call),
            Some(over) => {
                let inner = self.inner.clone();
                Reply::deferred(async move {
                    let _in_time = timeout(RETRY_WAITS, closed(over)).await;
                    inner.handle(call)
                })
            }
        };
        reply.attach(Box::new(sender))
    }
}

async fn closed(mut over: watch::Receiver<bool>) {
    while over.changed().await.is_ok() {}
}

/// Knows who calls.
struct Sender {
    connect: Connect,
    caller: Arc<Caller>,
}

impl Guard for Sender {
    fn done(&mut self, _: &Ending<'_>) {}

    fn edit(&mut self, step: &mut Step, _: Option<&Arc<str>>) {
        let Step::Done(Outcome::Error(Failure::Refused(refusal))) = step else { return };
        if let (Reason::Login | Reason::Scope, Some(upstream)) = (&refusal.reason, &refusal.upstream) {
            let is_for_more = refusal.reason == Reason::Scope;
            refusal.page = self.connect.page(&self.caller, upstream, is_for_more).map(Box::new);
        }
    }
}
