//! What a client listens to of resources: it follows to the instance that serves its era, and tells what may have changed meanwhile.

use crate::call::caller::Caller;
use crate::call::reply::{Change, Event, Outcome, Reply, Source, Step};
use crate::call::{Call, ListenFilter};
use crate::protocol::revision::Revision;
use crate::protocol::value::Object;
use crate::upstream::calls::ListenSource;
use crate::upstream::calls::sessions::own::home;
use crate::upstream::calls::tasks::take;
use crate::upstream::instance::Instance;
use crate::upstream::instance::admission::own::OwnSessions;
use std::collections::HashSet;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::watch;

/// Which instance serves the client now.
type Home = Box<dyn Fn() -> Arc<Instance> + Send>;
/// Resolves when another instance may.
type Moved = Pin<Box<dyn Future<Output = watch::Receiver<u64>> + Send>>;

/// What a listen call's reply is read from, where the upstream may be spoken to in both eras.
pub(super) struct FollowingSource {
    caller: Arc<Caller>,
    /// What is wanted; once it was acknowledged, what was honoured.
    uris: Vec<Arc<str>>,
    home: Home,
    moved: Moved,
    /// The instances that are listened to: more than one only until the new one has taken all that is wanted.
    parts: Vec<Part>,
    is_acknowledged: bool,
    /// What may have changed unseen.
    missed: Vec<Arc<str>>,
}

struct Part {
    instance: Arc<Instance>,
    source: ListenSource,
}

/// Takes a listen call about resources where the upstream is spoken to in one era: its reply follows to the session that its client has
/// to itself.
pub(crate) fn follow_own(primary: &Arc<Instance>, own: &OwnSessions<Instance>, call: Call) -> Reply {
    let Some(filter) = ListenFilter::parse(&call.params).filter(|filter| filter.tasks.is_empty()) else {
        return take(primary, call);
    };
    let (first, primary, caller) = (home(primary, &call.caller), primary.clone(), call.caller.clone());
    let home = Box::new(move || home(&primary, &caller));
    Reply::live(FollowingSource::new(first, filter.uris, call.caller.clone(), home, own.moves().subscribe()))
}

impl FollowingSource {
    /// Listens to an instance at first.
    pub(super) fn new(
        first: Arc<Instance>,
        uris: Vec<Arc<str>>,
        caller: Arc<Caller>,
        home: Home,
        moves: watch::Receiver<u64>,
    ) -> Self {
        let (moved, parts, missed) = (next_move(moves), Vec::new(), Vec::new());
        let mut source = Self { caller, uris, home, moved, parts, is_acknowledged: false, missed };
        source.open(first);
        source
    }

    fn open(&mut self, instance: Arc<Instance>) {
        let filter = ListenFilter { uris: self.uris.clone(), ..ListenFilter::default() };
        let source = match self.is_acknowledged {
            true => ListenSource::lasting(&instance, filter, &self.caller),
            false => ListenSource::new(&instance, filter, &self.caller),
        };
        self.parts.push(Part { instance, source });
    }

    /// Listens to the instance that serves the client now, beside the one before it.
    fn follow(&mut self) {
        let home = (self.home)();
        if !self.parts.iter().any(|part| Arc::ptr_eq(&part.instance, &home)) {
            self.open(home);
        }
    }

    /// An instance has said what it honours; gives what the client is told of that.
    fn acknowledged(&mut self, at: usize, honoured: Vec<Arc<str>>) -> Option<Change> {
        if self.is_acknowledged {
            // The one before it is left only when nothing is lost by that.
            let taken: HashSet<_> = honoured.iter().collect();
            if self.uris.iter().all(|uri| taken.contains(uri)) {
                self.parts.swap(0, at);
                self.parts.truncate(1);
            }
            self.missed = honoured;
            return None;
        }
        self.is_acknowledged = true;
        self.uris.clone_from(&honoured);
        self.follow();
        Some(Change::Acknowledged(ListenFilter { uris: honoured, ..ListenFilter::default() }))
    }

    /// An instance has gone; whether another one is listened to.
    fn ended(&mut self, at: usize) -> bool {
        let gone = self.parts.swap_remove(at);
        if self.parts.is_empty() {
            let home = (self.home)();
            if Arc::ptr_eq(&home, &gone.instance) || home.stopped.is_cancelled() {
                return false;
            }
            self.open(home);
        }
        true
    }
}

fn next_move(mut moves: watch::Receiver<u64>) -> Moved {
    Box::pin(async move {
        if moves.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        moves
    })
}

impl Source for FollowingSource {
    fn poll_step(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Step> {
        let this = &mut *self;
        while let Poll::Ready(moves) = this.moved.as_mut().poll(cx) {
            this.moved = next_move(moves);
            if this.is_acknowledged {
                this.follow();
            }
        }
        let mut at = 0;
        loop {
            if let Some(uri) = this.missed.pop() {
                return Poll::Ready(Step::Event(Event::Change(Change::Updated(uri))));
            }
            let Some(part) = this.parts.get_mut(at) else { return Poll::Pending };
            match Pin::new(&mut part.source).poll_step(cx) {
                Poll::Pending => at += 1,
                Poll::Ready(Step::Event(Event::Change(Change::Acknowledged(filter)))) => {
                    if let Some(change) = this.acknowledged(at, filter.uris) {
                        return Poll::Ready(Step::Event(Event::Change(change)));
                    }
                    at = 0;
                }
                Poll::Ready(Step::Done(_)) if this.ended(at) => at = 0,
                Poll::Ready(Step::Done(_)) => return Poll::Ready(Step::Done(Outcome::Complete(Object::empty()))),
                Poll::Ready(step) => return Poll::Ready(step),
            }
        }
    }

    fn revision(&self) -> Revision {
        self.caller.revision
    }
}
