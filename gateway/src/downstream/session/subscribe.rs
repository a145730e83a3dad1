//! A legacy subscription: a listen call that is answered once it was taken, and then kept with the session's notices.

use super::client::Session;
use super::notices::{acknowledges, listen_call, nothing};
use crate::call::ListenFilter;
use crate::call::refusal::{Reason, Refusal};
use crate::call::reply::{Outcome, Reply, Source, Step};
use crate::downstream::edge::Edge;
use crate::protocol::revision::Revision;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// What `resources/subscribe` is answered from.
pub(crate) struct Subscribing {
    session: Arc<Session>,
    uri: Arc<str>,
    /// Until it was acknowledged.
    listen: Option<Reply>,
    revision: Revision,
}

impl Subscribing {
    pub(crate) fn new(edge: &Edge, session: &Arc<Session>, uri: Arc<str>) -> Self {
        let filter = ListenFilter { uris: vec![uri.clone()], ..ListenFilter::default() };
        let reply = edge.call(listen_call(&session.caller, &filter, None));
        Self { session: session.clone(), uri, listen: Some(reply), revision: session.revision() }
    }
}

impl Source for Subscribing {
    fn poll_step(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Step> {
        let this = &mut *self;
        loop {
            let Some(listen) = &mut this.listen else {
                return Poll::Ready(Step::Done(Refusal::new(Reason::Internal, "the subscription has ended").into()));
            };
            let event = match ready!(listen.poll_step(cx)) {
                Step::Event(event) => event,
                Step::Done(Outcome::Error(failure)) => {
                    this.revision = listen.revision();
                    return Poll::Ready(Step::Done(Outcome::Error(failure)));
                }
                Step::Done(_) => {
                    let refusal =
                        Refusal::new(Reason::Unavailable, "the subscription ended before it began; try again");
                    return Poll::Ready(Step::Done(refusal.into()));
                }
            };
            match acknowledges(&event, &this.uri) {
                Some(true) => {
                    let Some(listen) = this.listen.take() else { continue };
                    this.session.notices.keep(&this.uri, listen);
                    return Poll::Ready(Step::Done(Outcome::Complete(nothing())));
                }
                Some(false) => {
                    let why = format!("the upstream of `{}` takes no subscriptions, or does not know it", this.uri);
                    return Poll::Ready(Step::Done(Refusal::new(Reason::InvalidParams, why).into()));
                }
                None => {}
            }
        }
    }

    fn revision(&self) -> Revision {
        self.revision
    }
}
