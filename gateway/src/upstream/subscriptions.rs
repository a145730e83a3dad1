//! The resource subscriptions that are wanted of an upstream, counted. Survives the link.

use super::overlap::Overlap;
use slab::Slab;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::sync::Notify;

/// How many changed resources wait for one listener; beyond it the oldest in order of URI stand for the rest.
const UPDATED_MAX: usize = 1024;

/// What is wanted of one upstream.
#[derive(Debug, Default)]
pub(crate) struct Wants {
    inner: Mutex<Inner>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    listeners: Slab<Listener>,
    uris: HashMap<Arc<str>, Wanted>,
    /// What streams tell that were replaced.
    overlap: Overlap,
}

/// One resource that somebody wants to hear of.
#[derive(Debug)]
struct Wanted {
    count: usize,
    /// Whether the upstream honours it, once it has said so.
    honoured: Option<bool>,
}

#[derive(Debug, Default)]
struct Listener {
    uris: Vec<Arc<str>>,
    updated: BTreeSet<Arc<str>>,
    waker: Option<Waker>,
}

impl Wants {
    /// Somebody wants to hear of these resources.
    pub(crate) fn listen(&self, uris: Vec<Arc<str>>) -> usize {
        let mut inner = self.lock();
        for uri in &uris {
            inner.uris.entry(uri.clone()).or_insert(Wanted { count: 0, honoured: None }).count += 1;
        }
        let key = inner.listeners.insert(Listener { uris, ..Listener::default() });
        drop(inner);
        self.changed.notify_one();
        key
    }

    /// And no longer does.
    pub(crate) fn leave(&self, key: usize) {
        let mut inner = self.lock();
        let listener = inner.listeners.remove(key);
        listener.uris.iter().for_each(|uri| inner.let_go(uri));
        drop(inner);
        self.changed.notify_one();
    }

    /// Which of a listener's resources are honoured, once the upstream has said so of each; with `is_late` those that it has
    /// said nothing of count as not honoured. What is not honoured is no longer wanted.
    pub(crate) fn poll_honoured(&self, key: usize, is_late: bool, cx: &mut Context<'_>) -> Poll<Vec<Arc<str>>> {
        let mut inner = self.lock();
        let uris = inner.listeners[key].uris.clone();
        let known: Vec<_> = uris.iter().map(|uri| inner.uris.get(uri).and_then(|wanted| wanted.honoured)).collect();
        if !is_late && known.contains(&None) {
            inner.listeners[key].waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let (honoured, others): (Vec<_>, Vec<_>) =
            uris.into_iter().zip(known).partition(|(_, known)| *known == Some(true));
        let honoured: Vec<_> = honoured.into_iter().map(|(uri, _)| uri).collect();
        inner.listeners[key].uris.clone_from(&honoured);
        others.iter().for_each(|(uri, _)| inner.let_go(uri));
        drop(inner);
        if !others.is_empty() {
            self.changed.notify_one();
        }
        Poll::Ready(honoured)
    }

    /// The next resource of a listener's that changed.
    pub(crate) fn poll_updated(&self, key: usize, cx: &mut Context<'_>) -> Poll<Arc<str>> {
        let mut inner = self.lock();
        let listener = &mut inner.listeners[key];
        if let Some(uri) = listener.updated.pop_first() {
            return Poll::Ready(uri);
        }
        listener.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// The upstream tells that a resource changed, on this stream where it says so: whoever wants it hears, or wants what it
    /// is a part of.
    pub(crate) fn updated(&self, uri: &str, on: Option<u64>) {
        let uri: Arc<str> = uri.into();
        let mut inner = self.lock();
        let wakers = match inner.overlap.is_told(&uri, on) {
            true => inner.tell(&uri),
            false => Vec::new(),
        };
        drop(inner);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// A stream of changes was replaced, and is heard for a while more.
    pub(crate) fn fades(&self, id: u64) {
        self.lock().overlap.begin(id);
    }

    /// And no longer is: what came on it alone is told.
    pub(crate) fn faded(&self, id: u64) {
        let mut inner = self.lock();
        let held = inner.overlap.end(id);
        let wakers: Vec<_> = held.iter().flat_map(|uri| inner.tell(uri)).collect();
        drop(inner);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// A resource may have changed unseen: whoever wants it hears that it has.
    pub(crate) fn missed(&self, uri: &Arc<str>) {
        let mut inner = self.lock();
        let concerned = inner.listeners.iter_mut().map(|(_, listener)| listener).filter(|one| one.uris.contains(uri));
        let wakers: Vec<_> = concerned.filter_map(|listener| listener.hear(uri)).collect();
        drop(inner);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Nobody told of changes for a while: all that is wanted may have changed unseen.
    pub(crate) fn all_missed(&self) {
        self.wanted().iter().for_each(|uri| self.missed(uri));
    }

    /// The upstream has said whether it honours a subscription.
    pub(crate) fn settled(&self, uri: &str, honoured: bool) {
        let mut inner = self.lock();
        match inner.uris.get_mut(uri) {
            Some(wanted) if wanted.honoured != Some(honoured) => wanted.honoured = Some(honoured),
            _ => return,
        }
        let wakers: Vec<_> = inner.listeners.iter_mut().filter_map(|(_, listener)| listener.waker.take()).collect();
        drop(inner);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// All resources that somebody wants to hear of, in order.
    pub(crate) fn wanted(&self) -> BTreeSet<Arc<str>> {
        self.lock().uris.keys().cloned().collect()
    }

    /// Resolves when something of this has changed.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Whoever wants it, or what it is a part of, hears that it changed.
    fn tell(&mut self, uri: &Arc<str>) -> Vec<Waker> {
        let concerned = self
            .listeners
            .iter_mut()
            .map(|(_, listener)| listener)
            .filter(|one| one.uris.iter().any(|whole| is_part(uri, whole)));
        concerned.filter_map(|listener| listener.hear(uri)).collect()
    }

    fn let_go(&mut self, uri: &Arc<str>) {
        if let Some(wanted) = self.uris.get_mut(uri) {
            wanted.count -= 1;
            if wanted.count == 0 {
                self.uris.remove(uri);
            }
        }
    }
}

impl Listener {
    fn hear(&mut self, uri: &Arc<str>) -> Option<Waker> {
        if self.updated.len() < UPDATED_MAX {
            self.updated.insert(uri.clone());
        }
        self.waker.take()
    }
}

/// Whether `uri` is `whole` or a part of it.
fn is_part(uri: &str, whole: &str) -> bool {
    match uri.strip_prefix(whole) {
        Some("") => true,
        Some(rest) => whole.ends_with(['/', '#', '?']) || rest.starts_with(['/', '#', '?']),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poll<T>(step: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        step(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn wants_are_counted_and_what_is_refused_is_no_longer_wanted() {
        let wants = Wants::default();
        let (one, two) = (wants.listen(vec!["a:1".into(), "a:2".into()]), wants.listen(vec!["a:1".into()]));
        wants.settled("a:1", true);
        assert!(poll(|cx| wants.poll_honoured(one, false, cx)).is_pending());
        assert_eq!(poll(|cx| wants.poll_honoured(two, false, cx)), Poll::Ready(vec!["a:1".into()]));
        wants.settled("a:2", false);
        assert_eq!(poll(|cx| wants.poll_honoured(one, false, cx)), Poll::Ready(vec!["a:1".into()]));
        assert_eq!(wants.wanted(), BTreeSet::from(["a:1".into()]));
        wants.leave(two);
        assert_eq!(wants.wanted().len(), 1);
        wants.leave(one);
        assert!(wants.wanted().is_empty());
    }

    #[test]
    fn a_part_that_changed_is_told_once_to_who_wants_the_whole() {
        let wants = Wants::default();
        let key = wants.listen(vec!["file:///a".into()]);
        for uri in ["file:///ab", "file:///a/b", "file:///a/b", "file:///"] {
            wants.updated(uri, None);
        }
        assert_eq!(poll(|cx| wants.poll_updated(key, cx)), Poll::Ready("file:///a/b".into()));
        assert!(poll(|cx| wants.poll_updated(key, cx)).is_pending());
        wants.all_missed();
        assert_eq!(poll(|cx| wants.poll_updated(key, cx)), Poll::Ready("file:///a".into()));
    }
}
