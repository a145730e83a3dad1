//! What a legacy session hears of unasked: its listen replies, which wait unpolled while no stream is open.

use super::questions::ClientQuestions;
use super::waiting::WaitingMessages;
use crate::call::caller::Caller;
use crate::call::reply::{Change, Event, Reply, Step};
use crate::call::{Call, ListenFilter, LogLevel};
use crate::edge::Edge;
use crate::protocol::frame::Method;
use crate::protocol::json;
use crate::protocol::value::Object;
use crate::response::{plain_change, plain_log};
use bytes::Bytes;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// The most resources that one session may be subscribed to.
pub(crate) const SUBSCRIPTIONS_MAX: usize = 512;

/// A session's listen replies. A change that nobody reads stays joined with its like in its reply, so this takes no task.
pub(crate) struct Notices {
    inner: Mutex<Inner>,
    /// Questions that belong to no call go the same way.
    outgoing: Arc<ClientQuestions>,
}

struct Inner {
    /// Hears of the lists, and of log messages with no call of their own.
    lists: Option<Reply>,
    /// One for each subscribed resource.
    resources: Vec<Subscribed>,
    /// Resources that were subscribed to in an earlier run, until their upstreams have taken that again.
    awaited: Vec<Arc<str>>,
    /// What was taken out of a reply that was replaced; more waits, joined, in the replies.
    waiting: WaitingMessages,
    /// Which stream reads: the newest.
    reader: u64,
    waker: Option<Waker>,
    closed: bool,
}

/// A resource that is subscribed to.
struct Subscribed {
    uri: Arc<str>,
    reply: Reply,
    /// It may have changed while nobody listened.
    is_due: bool,
}

impl Notices {
    pub(crate) fn new(outgoing: &Arc<ClientQuestions>) -> Self {
        let inner = Inner {
            lists: None,
            resources: Vec::new(),
            awaited: Vec::new(),
            waiting: WaitingMessages::new(outgoing.budget()),
            reader: 0,
            waker: None,
            closed: false,
        };
        Self { inner: Mutex::new(inner), outgoing: outgoing.clone() }
    }

    /// Opens the listen call for the lists, anew where there was one.
    pub(crate) fn listen(&self, edge: &Edge, caller: &Arc<Caller>, level: Option<LogLevel>) {
        let reply = edge.call(listen_call(caller, &ListenFilter::lists(), level));
        let mut inner = self.lock();
        if inner.closed {
            return;
        }
        let before = inner.lists.replace(reply);
        if let Some(mut before) = before {
            // What it had heard is not lost with it.
            let cx = &mut Context::from_waker(Waker::noop());
            while !inner.waiting.is_full()
                && let Poll::Ready(Step::Event(event)) = before.poll_step(cx)
            {
                frame_of(event).into_iter().for_each(|frame| inner.waiting.push(frame));
            }
        }
        inner.wake();
    }

    /// Lists of these kinds may have changed while nobody listened: tools, prompts, resources.
    pub(crate) fn missed(&self, lists: [bool; 3]) {
        let mut inner = self.lock();
        for (change, is_there) in [Change::Tools, Change::Prompts, Change::Resources].iter().zip(lists) {
            plain_change(change).filter(|_| is_there).into_iter().for_each(|frame| inner.waiting.push(frame));
        }
        inner.wake();
    }

    /// Keeps the reply of a subscription, in place of an older one for the same resource.
    pub(crate) fn keep(&self, uri: &Arc<str>, reply: Reply) {
        self.lock().keep(Subscribed { uri: uri.clone(), reply, is_due: false });
    }

    /// These were subscribed to in an earlier run, and are to be again.
    pub(crate) fn await_again(&self, uris: Vec<Arc<str>>) {
        self.lock().awaited = uris;
    }

    /// What is still to be subscribed to again.
    pub(crate) fn awaited(&self) -> Vec<Arc<str>> {
        self.lock().awaited.clone()
    }

    /// Keeps the reply of a subscription that was made again, where it is still wanted. What has changed meanwhile was told to nobody.
    pub(crate) fn keep_again(&self, uri: &Arc<str>, reply: Reply) {
        let mut inner = self.lock();
        if inner.awaited.contains(uri) {
            inner.keep(Subscribed { uri: uri.clone(), reply, is_due: true });
        }
    }

    /// A resource cannot be subscribed to again; whether that is still wanted.
    pub(crate) fn give_up(&self, uri: &str) -> bool {
        self.lock().give_up(uri)
    }

    /// Drops a subscription; whether there was one.
    pub(crate) fn forget(&self, uri: &str) -> bool {
        let mut inner = self.lock();
        let before = inner.resources.len();
        inner.resources.retain(|kept| *kept.uri != *uri);
        let was_awaited = inner.give_up(uri);
        inner.resources.len() < before || was_awaited
    }

    /// The resources that its client wants to hear of; `None` once the session has ended.
    pub(crate) fn uris(&self) -> Option<Vec<Arc<str>>> {
        let inner = self.lock();
        let subscribed = inner.resources.iter().map(|kept| &kept.uri);
        (!inner.closed).then(|| subscribed.chain(&inner.awaited).cloned().collect())
    }

    /// Tells a warning of the gateway's own.
    pub(crate) fn warn(&self, text: &str) {
        let params = format!("{{\"level\":\"warning\",\"logger\":\"trunkline\",\"data\":{}}}", json::quote(text));
        let mut inner = self.lock();
        if let (false, Ok(params)) = (inner.closed, Object::parse(params.into())) {
            inner.waiting.push(plain_log(&params));
            inner.wake();
        }
    }

    /// Whether no more subscriptions are taken.
    pub(crate) fn is_full(&self) -> bool {
        let inner = self.lock();
        inner.resources.len() + inner.awaited.len() >= SUBSCRIPTIONS_MAX
    }

    /// Takes over as the one stream that reads.
    pub(crate) fn take_over(&self) -> u64 {
        let mut inner = self.lock();
        inner.reader += 1;
        inner.wake();
        inner.reader
    }

    /// The next notice; `None` when a newer stream reads, or the session has ended.
    pub(crate) fn poll_next(&self, reader: u64, cx: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        let mut inner = self.lock();
        if inner.closed || inner.reader != reader {
            return Poll::Ready(None);
        }
        if let Poll::Ready(frame) = self.outgoing.poll_frame(cx) {
            return Poll::Ready(Some(frame));
        }
        if let Some(frame) = inner.poll_replies(cx) {
            return Poll::Ready(Some(frame));
        }
        inner.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Has whatever stream reads look again.
    pub(crate) fn wake(&self) {
        self.lock().wake();
    }

    /// Ends everything.
    pub(crate) fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        inner.wake();
        let gone = (inner.lists.take(), std::mem::take(&mut inner.resources));
        drop(inner);
        drop(gone);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn poll_replies(&mut self, cx: &mut Context<'_>) -> Option<Vec<u8>> {
        if let Some(frame) = self.waiting.pop() {
            return Some(frame);
        }
        if let Some(reply) = &mut self.lists {
            match poll_frame(reply, cx) {
                Poll::Ready(Some(frame)) => return Some(frame),
                Poll::Ready(None) => self.lists = None,
                Poll::Pending => {}
            }
        }
        let mut at = 0;
        while let Some(kept) = self.resources.get_mut(at) {
            if std::mem::take(&mut kept.is_due)
                && let Some(frame) = plain_change(&Change::Updated(kept.uri.clone()))
            {
                return Some(frame);
            }
            match poll_frame(&mut kept.reply, cx) {
                Poll::Ready(Some(frame)) => {
                    // Whoever was heard last is asked last.
                    self.resources.rotate_left(at + 1);
                    return Some(frame);
                }
                Poll::Ready(None) => drop(self.resources.remove(at)),
                Poll::Pending => at += 1,
            }
        }
        None
    }

    fn keep(&mut self, subscribed: Subscribed) {
        if self.closed {
            return;
        }
        self.give_up(&subscribed.uri);
        self.resources.retain(|kept| kept.uri != subscribed.uri);
        self.resources.push(subscribed);
        self.wake();
    }

    fn give_up(&mut self, uri: &str) -> bool {
        let before = self.awaited.len();
        self.awaited.retain(|awaited| **awaited != *uri);
        self.awaited.len() < before
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// The next notice of a reply; `None` when it has ended.
fn poll_frame(reply: &mut Reply, cx: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
    loop {
        match std::task::ready!(reply.poll_step(cx)) {
            Step::Event(event) => {
                if let Some(frame) = frame_of(event) {
                    return Poll::Ready(Some(frame));
                }
            }
            Step::Done(_) => return Poll::Ready(None),
        }
    }
}

fn frame_of(event: Event) -> Option<Vec<u8>> {
    match event {
        Event::Change(change) => plain_change(&change),
        Event::Log(_, params) => Some(plain_log(&params)),
        Event::Progress(_) | Event::Ask(_) => None,
    }
}

/// A listen call of a session.
pub(crate) fn listen_call(caller: &Arc<Caller>, filter: &ListenFilter, log_level: Option<LogLevel>) -> Call {
    Call {
        method: Method::Listen,
        params: filter.to_params(),
        meta: Bytes::new(),
        caller: caller.clone(),
        progress: false,
        log_level,
        is_notification: false,
        param_headers: None,
        target_name: None,
        public: None,
        bound_to: None,
        trace: None,
    }
}

/// Whether an event tells that a listen call was taken; and if so, whether this resource is part of it.
pub(crate) fn acknowledges(event: &Event, uri: &str) -> Option<bool> {
    match event {
        Event::Change(Change::Acknowledged(filter)) => Some(filter.uris.iter().any(|honoured| **honoured == *uri)),
        _ => None,
    }
}

/// `{}`, what legacy clients are answered where there is nothing to say.
pub(crate) fn nothing() -> Object {
    Object::empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::reply::Source;
    use crate::memory::budget::Budget;
    use crate::protocol::revision::Revision;
    use crate::response::Label;
    use std::pin::Pin;

    /// A subscription of which nothing comes.
    struct Quiet;

    impl Source for Quiet {
        fn poll_step(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Step> {
            Poll::Pending
        }

        fn revision(&self) -> Revision {
            Revision::V2025_11_25
        }
    }

    fn notices(awaited: &[Arc<str>]) -> Notices {
        let budget = Budget::default();
        let notices = Notices::new(&Arc::new(ClientQuestions::new(Revision::V2025_11_25, Label(false), budget)));
        notices.await_again(awaited.to_vec());
        notices
    }

    fn quiet() -> Reply {
        Reply::live(Quiet)
    }

    fn told(notices: &Notices) -> usize {
        let reader = notices.take_over();
        let cx = &mut Context::from_waker(Waker::noop());
        std::iter::from_fn(|| match notices.poll_next(reader, cx) {
            Poll::Ready(frame) => frame,
            Poll::Pending => None,
        })
        .count()
    }

    #[test]
    fn what_is_wanted_again_is_all_that_is_wanted_until_it_is_there_or_given_up() {
        let [one, two, three]: [Arc<str>; 3] = ["a:1".into(), "a:2".into(), "a:3".into()];
        let notices = notices(&[one.clone(), two.clone(), three.clone()]);
        assert_eq!(notices.uris().unwrap().len(), 3, "a restart now loses none");
        // Its client ends one and makes one itself, both before the upstream has taken them again.
        assert!(notices.forget(&one) && !notices.forget(&one));
        notices.keep(&two, quiet());
        [&one, &two, &three].iter().for_each(|uri| notices.keep_again(uri, quiet()));
        assert_eq!(notices.uris().unwrap(), [two.clone(), three.clone()]);
        assert_eq!(told(&notices), 1, "the third may have changed; of the second its client heard an answer");
        assert_eq!(told(&notices), 0);
        assert!(!notices.give_up(&one) && !notices.give_up(&two), "nothing is awaited");
        notices.close();
        assert_eq!(notices.uris(), None, "what a session wanted that has ended is not overwritten");
    }

    #[test]
    fn each_of_many_resources_that_are_subscribed_to_again_is_said_to_may_have_changed() {
        let many: Vec<Arc<str>> = (0..SUBSCRIPTIONS_MAX).map(|number| format!("a:{number}").into()).collect();
        let notices = notices(&many);
        assert!(notices.is_full());
        many.iter().for_each(|uri| notices.keep_again(uri, quiet()));
        assert!(notices.is_full() && notices.awaited().is_empty());
        assert_eq!(told(&notices), SUBSCRIPTIONS_MAX);
    }
}
