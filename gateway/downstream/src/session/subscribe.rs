//! A legacy subscription: a listen call that is answered once it was taken, and then kept with the session's notices.

use super::client::Requester;
use super::client::Session;
use super::kept::Change;
use super::notices::{acknowledges, listen_call, nothing};
use crate::call::refusal::{Reason, Refusal};
use crate::call::reply::{Outcome, Reply, Source, Step};
use crate::call::{ListenFilter, LogLevel};
use crate::edge::Edge;
use crate::protocol::revision::Revision;
use std::future::poll_fn;
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
    /// Whether an earlier run had it.
    is_again: bool,
    /// Once it was acknowledged: until it is kept.
    written: Option<Written>,
}

/// A wish on its way to the disk.
type Written = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A wish that is kept.
struct Keeping {
    written: Written,
    revision: Revision,
}

impl Source for Keeping {
    fn poll_step(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Step> {
        ready!(self.written.as_mut().poll(cx));
        Poll::Ready(Step::Done(Outcome::Complete(nothing())))
    }

    fn revision(&self) -> Revision {
        self.revision
    }
}

impl Subscribing {
    pub(crate) fn new(edge: &Edge, requester: &Requester, uri: Arc<str>) -> Self {
        let filter = ListenFilter { uris: vec![uri.clone()], ..ListenFilter::default() };
        let reply = edge.call(listen_call(requester.caller.caller(), &filter, None));
        let (session, revision) = (requester.session.clone(), requester.session.revision());
        Self { session, uri, listen: Some(reply), revision, is_again: false, written: None }
    }

    /// What a client is answered that wants something else lastingly: once a later run will know of it.
    pub(crate) fn once_written(revision: Revision, change: Option<Change>) -> Reply {
        match change {
            Some(change) => Reply::live(Keeping { written: Box::pin(change.written()), revision }),
            None => Reply::complete(revision, nothing()),
        }
    }

    /// A session listens again as in the earlier run. Resolves once upstreams have taken the subscriptions of that, or have refused them.
    pub(crate) fn all_again(session: &Arc<Session>, edge: &Edge) -> impl Future<Output = ()> + Send + use<> {
        loop {
            let level = session.level();
            session.notices.listen(edge, &session.caller(), level);
            // Another request may have set one in the meantime.
            if session.level() == level {
                break;
            }
        }
        let awaited = session.notices.awaited().into_iter();
        let mut open: Vec<_> = awaited.map(|uri| (uri.clone(), Subscribing::again(edge, session, uri))).collect();
        let (session, mut lost) = (session.clone(), 0);
        async move {
            poll_fn(|cx| {
                open.retain_mut(|(uri, subscribing)| match Pin::new(subscribing).poll_step(cx) {
                    Poll::Pending => true,
                    Poll::Ready(Step::Done(Outcome::Complete(_))) => false,
                    Poll::Ready(_) => {
                        lost += usize::from(session.notices.give_up(uri));
                        false
                    }
                });
                if open.is_empty() { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
            if lost > 0 {
                let _aside = session.wishes_changed();
                has_lost(&session, lost);
            }
        }
    }

    /// One that the session had in an earlier run.
    fn again(edge: &Edge, session: &Arc<Session>, uri: Arc<str>) -> Self {
        Self { is_again: true, ..Self::new(edge, &session.requester(), uri) }
    }
}

/// So many subscriptions of an earlier run could not be had again: that is said in the log, and to the client.
fn has_lost(session: &Session, lost: usize) {
    let client_session = session.caller().tenant.as_ref().map(|tenant| tenant.mark());
    tracing::info!(client_session, lost, "subscriptions of an earlier run could not be had again");
    if session.level().unwrap_or(LogLevel::ORDINARY) <= LogLevel::Warning {
        session.notices.warn(&format!(
            "after a restart of the gateway {lost} of your subscriptions could not be had again; subscribe anew"
        ));
    }
}

impl Source for Subscribing {
    fn poll_step(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Step> {
        let this = &mut *self;
        loop {
            if let Some(written) = &mut this.written {
                ready!(written.as_mut().poll(cx));
                return Poll::Ready(Step::Done(Outcome::Complete(nothing())));
            }
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
                    if this.is_again {
                        this.session.notices.keep_again(&this.uri, listen);
                    } else {
                        this.session.notices.keep(&this.uri, listen);
                        if let Some(change) = this.session.wishes_changed() {
                            this.written = Some(Box::pin(change.written()));
                            continue;
                        }
                    }
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
