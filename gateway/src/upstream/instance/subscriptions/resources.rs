//! The resource subscriptions that are wanted of an upstream, counted. Survives the link.

use super::overlap::Overlap;
use crate::call::share::Share;
use crate::steps;
use slab::Slab;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::sync::{Notify, watch};

/// How many changed resources wait for one listener; beyond it the oldest in order of URI stand for the rest.
const UPDATED_MAX: usize = 1024;

/// What is wanted of one upstream.
#[derive(Debug, Default)]
pub(crate) struct WantedSubscriptions {
    inner: Mutex<Inner>,
    changed: Notify,
    /// Whether anything was ever wanted.
    has_begun: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Inner {
    listeners: Slab<Listener>,
    uris: HashMap<Arc<str>, WantedResource>,
    /// What streams tell that were replaced.
    overlap: Overlap,
    /// What somebody wants since whoever keeps it looked last, or nobody does any more.
    news: Vec<Arc<str>>,
    /// Who keeps what is wanted, by number, and whether anybody does.
    follower: u64,
    is_followed: bool,
}

/// What changes in what is wanted, for whoever keeps it.
#[derive(Debug)]
pub(crate) struct News<'a> {
    wants: &'a WantedSubscriptions,
    number: u64,
}

/// The deepest part of a resource that stands for the whole, in separators of its URI.
const PARTS_MAX: usize = 128;

/// One resource that somebody wants to hear of.
#[derive(Debug, Default)]
struct WantedResource {
    /// Who does, by their keys.
    listeners: BTreeSet<usize>,
    /// Whether the upstream honours it, once it has said so.
    honoured: Option<bool>,
    /// Of whom the first of them is.
    share: Option<Share>,
}

#[derive(Debug, Default)]
struct Listener {
    uris: Vec<Arc<str>>,
    /// Of how many of them the upstream has not said whether it honours them.
    unsettled: usize,
    updated: BTreeSet<Arc<str>>,
    waker: Option<Waker>,
}

impl WantedSubscriptions {
    /// Somebody wants to hear of these resources.
    pub(crate) fn listen(&self, uris: Vec<Arc<str>>, share: &Share) -> usize {
        if !uris.is_empty() {
            self.has_begun.send_if_modified(|has_begun| !std::mem::replace(has_begun, true));
        }
        let mut inner = self.lock();
        let inner = &mut *inner;
        let key = inner.listeners.vacant_key();
        let (mut own, mut unsettled) = (Vec::with_capacity(uris.len()), 0);
        for uri in uris {
            steps::add(1);
            let wanted = inner.uris.entry(uri.clone()).or_default();
            if wanted.share.is_none() {
                wanted.share = Some(share.clone());
                if inner.is_followed {
                    inner.news.push(uri.clone());
                }
            }
            if wanted.listeners.insert(key) {
                unsettled += usize::from(wanted.honoured.is_none());
                own.push(uri);
            }
        }
        inner.listeners.insert(Listener { uris: own, unsettled, ..Listener::default() });
        self.changed.notify_one();
        key
    }

    /// And no longer does.
    pub(crate) fn leave(&self, key: usize) {
        let mut inner = self.lock();
        let listener = inner.listeners.remove(key);
        listener.uris.iter().for_each(|uri| inner.let_go(key, uri));
        drop(inner);
        self.changed.notify_one();
    }

    /// Which of a listener's resources are honoured, once the upstream has said so of each; with `is_late` those that it has
    /// said nothing of count as not honoured. What is not honoured is no longer wanted.
    pub(crate) fn poll_honoured(&self, key: usize, is_late: bool, cx: &mut Context<'_>) -> Poll<Vec<Arc<str>>> {
        let mut inner = self.lock();
        if !is_late && inner.listeners[key].unsettled > 0 {
            inner.listeners[key].waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let uris = std::mem::take(&mut inner.listeners[key].uris);
        steps::add(uris.len());
        let is_honoured = |uri: &Arc<str>| inner.uris.get(uri).and_then(|wanted| wanted.honoured) == Some(true);
        let (honoured, others): (Vec<_>, Vec<_>) = uris.into_iter().partition(is_honoured);
        let listener = &mut inner.listeners[key];
        (listener.uris, listener.unsettled) = (honoured.clone(), 0);
        others.iter().for_each(|uri| inner.let_go(key, uri));
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
        let mut wakers = Vec::new();
        inner.tell_of(uri, uri, &mut wakers);
        drop(inner);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Nobody told of changes for a while: all that is wanted may have changed unseen.
    pub(crate) fn all_missed(&self) {
        let mut inner = self.lock();
        let hear = |listener: &mut Listener| {
            let uris = std::mem::take(&mut listener.uris);
            steps::add(uris.len());
            let wakers: Vec<_> = uris.iter().filter_map(|uri| listener.hear(uri)).collect();
            listener.uris = uris;
            wakers
        };
        let wakers: Vec<_> = inner.listeners.iter_mut().flat_map(|(_, listener)| hear(listener)).collect();
        drop(inner);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// The upstream has said whether it honours a subscription.
    pub(crate) fn settled(&self, uri: &str, honoured: bool) {
        let mut inner = self.lock();
        let Inner { listeners, uris, .. } = &mut *inner;
        let Some(wanted) = uris.get_mut(uri) else { return };
        if wanted.honoured.replace(honoured).is_some() {
            return;
        }
        let mut wakers = Vec::new();
        for key in &wanted.listeners {
            steps::add(1);
            let listener = &mut listeners[*key];
            listener.unsettled = listener.unsettled.saturating_sub(1);
            if listener.unsettled == 0 {
                wakers.extend(listener.waker.take());
            }
        }
        drop(inner);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// All resources that somebody wants to hear of, in order.
    pub(crate) fn wanted(&self) -> BTreeSet<Arc<str>> {
        self.lock().uris.keys().cloned().collect()
    }

    /// Whether nothing is wanted.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().uris.is_empty()
    }

    /// For whom a resource was first wanted; `None` where nobody wants it.
    pub(crate) fn share_of(&self, uri: &str) -> Option<Share> {
        self.lock().uris.get(uri).and_then(|wanted| wanted.share.clone())
    }

    /// What is wanted, to begin with, and then what changes: for the one who keeps it from now on.
    pub(crate) fn follow(&self) -> News<'_> {
        let mut inner = self.lock();
        inner.news = inner.uris.keys().cloned().collect();
        inner.news.sort_unstable();
        inner.follower += 1;
        inner.is_followed = true;
        News { wants: self, number: inner.follower }
    }

    /// Resolves when anything was ever wanted.
    pub(crate) async fn begun(&self) {
        // The sender lies here.
        let _ = self.has_begun.subscribe().wait_for(|has_begun| *has_begun).await;
    }

    /// Resolves when something of this has changed.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl News<'_> {
    /// What changed since it was last taken, each in the order in which it did; some of it more than once.
    pub(crate) fn take(&self) -> Vec<Arc<str>> {
        let mut inner = self.wants.lock();
        if inner.follower == self.number { std::mem::take(&mut inner.news) } else { Vec::new() }
    }
}

impl Drop for News<'_> {
    fn drop(&mut self) {
        let mut inner = self.wants.lock();
        if inner.follower == self.number {
            (inner.news, inner.is_followed) = (Vec::new(), false);
        }
    }
}

impl Inner {
    /// Whoever wants it, or what it is a part of, hears that it changed.
    fn tell(&mut self, uri: &Arc<str>) -> Vec<Waker> {
        let mut wakers = Vec::new();
        self.tell_of(uri, uri, &mut wakers);
        let separators = uri.bytes().enumerate().filter(|(_, byte)| matches!(byte, b'/' | b'#' | b'?'));
        for (at, _) in separators.take(PARTS_MAX) {
            // What ends before a separator has the rest as its part, and so has what ends with it.
            self.tell_of(&uri[..at], uri, &mut wakers);
            if at + 1 < uri.len() {
                self.tell_of(&uri[..=at], uri, &mut wakers);
            }
        }
        wakers
    }

    /// Whoever wants the whole hears that a part of it changed, or that all of it did.
    fn tell_of(&mut self, whole: &str, part: &Arc<str>, wakers: &mut Vec<Waker>) {
        steps::add(whole.len() + 1);
        let Some(wanted) = self.uris.get(whole) else { return };
        for key in &wanted.listeners {
            steps::add(1);
            wakers.extend(self.listeners[*key].hear(part));
        }
    }

    fn let_go(&mut self, key: usize, uri: &Arc<str>) {
        if let Some(wanted) = self.uris.get_mut(uri) {
            wanted.listeners.remove(&key);
            if wanted.listeners.is_empty() {
                self.uris.remove(uri);
                if self.is_followed {
                    self.news.push(uri.clone());
                }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn poll<T>(step: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        step(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn wants_are_counted_and_what_is_refused_is_no_longer_wanted() {
        let wants = WantedSubscriptions::default();
        let (one, two) = (
            wants.listen(vec!["a:1".into(), "a:2".into()], &Share::Unknown),
            wants.listen(vec!["a:1".into()], &Share::Unknown),
        );
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
        let wants = WantedSubscriptions::default();
        let key = wants.listen(vec!["file:///a".into()], &Share::Unknown);
        for uri in ["file:///ab", "file:///a/b", "file:///a/b", "file:///"] {
            wants.updated(uri, None);
        }
        assert_eq!(poll(|cx| wants.poll_updated(key, cx)), Poll::Ready("file:///a/b".into()));
        assert!(poll(|cx| wants.poll_updated(key, cx)).is_pending());
        wants.all_missed();
        assert_eq!(poll(|cx| wants.poll_updated(key, cx)), Poll::Ready("file:///a".into()));
    }

    #[test]
    fn what_is_told_of_one_resource_does_not_cost_more_the_more_others_are_wanted() {
        let made = |listeners: usize, uris: usize| {
            let wants = WantedSubscriptions::default();
            let of = |one: usize| (0..uris).map(|at| format!("file:///{one}/{at}").into()).collect();
            let keys: Vec<_> = (0..listeners).map(|one| wants.listen(of(one), &Share::Unknown)).collect();
            (wants, keys)
        };
        let (wants, keys) = made(64, 256);
        let one = crate::steps::of(|| wants.updated("file:///7/7/part", None)).unwrap();
        assert!(one < 200, "{one} steps");
        assert_eq!(poll(|cx| wants.poll_updated(keys[7], cx)), Poll::Ready("file:///7/7/part".into()));
        let cost = |listeners, uris| {
            let (wants, keys) = made(listeners, uris);
            let all = wants.wanted();
            crate::steps::of(|| {
                let mut is_waiting = true;
                for uri in &all {
                    wants.settled(uri, true);
                    is_waiting = is_waiting && poll(|cx| wants.poll_honoured(keys[0], false, cx)).is_pending();
                }
                wants.all_missed();
            })
            .unwrap() as f64
        };
        let (base, listeners, uris) = (cost(16, 64), cost(32, 64), cost(16, 128));
        assert!(listeners / base < 2.6 && uris / base < 2.6, "{base}, {listeners}, {uris} steps");
    }
}
