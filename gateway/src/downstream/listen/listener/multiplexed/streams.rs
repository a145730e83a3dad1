//! The requests that are open on one connection: counted, and each cut alone where its client takes nothing of the answer.

use super::frames::Credit;
use crate::downstream::listen::connections::{Arrival, Beside};
use crate::downstream::listen::timeouts::{ConnectionWatch, Guard};
use crate::memory::Refusals;
use crate::memory::account::Kind;
use crate::memory::budget::{Budget, Charge};
use crate::runtime::timer::late::passed;
use slab::Slab;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// What an open request is counted as: its head, and what of the answer lies in the connection.
const STREAM_BYTES: usize = 16 * 1024;
/// So long requests are taken that a client sends before it can know that it is to send no more.
const ON_THE_WAY: Duration = Duration::from_secs(1);

/// The open requests of a connection.
pub(super) struct Streams {
    watch: Arc<ConnectionWatch>,
    arrival: Arrival,
    credit: Arc<Credit>,
    budget: Budget,
    refusals: Refusals,
    began: Instant,
    inner: Mutex<Inner>,
    /// An answer waits for room at the client.
    waits: Notify,
    /// The client is to leave.
    parts: Notify,
}

#[derive(Default)]
struct Inner {
    open: Slab<Arc<Stream>>,
    /// The one that came last, until its task is started.
    newest: Option<Arc<Stream>>,
    /// When the client was told to send no more requests.
    parted: Option<Instant>,
}

/// One request.
#[derive(Default)]
pub(super) struct Stream {
    /// Since when a part of its answer has been waiting for room, in milliseconds since the connection began plus one; 0 means no.
    unread_since: AtomicU64,
    cut: Notify,
}

/// A request is open as long as this lives.
pub(super) struct Open {
    of: Arc<Streams>,
    key: usize,
    stream: Arc<Stream>,
    _beside: Option<Beside>,
    _charge: Charge,
}

impl Streams {
    pub(super) fn new(
        watch: Arc<ConnectionWatch>,
        arrival: Arrival,
        credit: Arc<Credit>,
        (budget, refusals): (Budget, Refusals),
    ) -> Arc<Self> {
        Arc::new(Self {
            watch,
            arrival,
            credit,
            budget,
            refusals,
            began: Instant::now(),
            inner: Mutex::default(),
            waits: Notify::new(),
            parts: Notify::new(),
        })
    }

    /// One more request. Beside others it takes the place of a connection; `None` where there is none.
    pub(super) fn open(self: &Arc<Self>) -> Option<Open> {
        let mut inner = self.lock();
        if inner.parted.is_some_and(|parted| parted.elapsed() > ON_THE_WAY) {
            return None;
        }
        let beside = match inner.open.is_empty() {
            true => None,
            false => Some(self.arrival.beside().or_else(|| {
                self.refusals.turn_away("connections", &"a request beside others counts as a connection");
                None
            })?),
        };
        if inner.open.is_empty() {
            self.watch.serves(true);
        }
        let stream = Arc::<Stream>::default();
        let key = inner.open.insert(stream.clone());
        inner.newest = Some(stream.clone());
        drop(inner);
        let charge = self.budget.count(Kind::Connection, STREAM_BYTES);
        Some(Open { of: self.clone(), key, stream, _beside: beside, _charge: charge })
    }

    /// The request that came last; none where it was refused.
    pub(super) fn take_newest(&self) -> Option<Arc<Stream>> {
        self.lock().newest.take()
    }

    /// Whether clients are to leave.
    pub(super) fn is_leaving(&self) -> bool {
        self.watch.is_leaving()
    }

    /// The client is to send no more requests on this connection.
    pub(super) fn part(&self) {
        self.lock().parted.get_or_insert_with(Instant::now);
        self.parts.notify_one();
    }

    /// Resolves when that was said.
    pub(super) async fn parted(&self) {
        self.parts.notified().await;
    }

    /// Cuts each request whose client takes nothing of its answer for too long, and no other. It never ends.
    pub(super) async fn cut_unread(&self) {
        loop {
            while let Some(since) = self.waits_since() {
                passed(self.began + Duration::from_millis(since - 1) + self.watch.unread_limit()).await;
                self.cut_before(self.now().saturating_sub(self.watch.unread_limit().as_millis() as u64));
            }
            self.waits.notified().await;
        }
    }

    /// Since when the answer has been waiting that has waited the longest.
    fn waits_since(&self) -> Option<u64> {
        let inner = self.lock();
        inner
            .open
            .iter()
            .map(|(_, stream)| stream.unread_since.load(Ordering::Relaxed))
            .filter(|since| *since > 0)
            .min()
    }

    fn cut_before(&self, time: u64) {
        for (_, stream) in &self.lock().open {
            let since = stream.unread_since.load(Ordering::Relaxed);
            if since > 0 && since <= time {
                stream.unread_since.store(0, Ordering::Relaxed);
                stream.cut.notify_one();
            }
        }
    }

    fn now(&self) -> u64 {
        self.began.elapsed().as_millis() as u64 + 1
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stream {
    /// Resolves when it is to be reset.
    pub(super) async fn cut(&self) {
        self.cut.notified().await;
    }
}

impl Wake for Stream {
    fn wake(self: Arc<Self>) {
        self.cut.notify_one();
    }
}

impl Guard for Open {
    fn watch(&self) -> &Arc<ConnectionWatch> {
        &self.of.watch
    }

    fn cut(&self) -> Waker {
        Waker::from(self.stream.clone())
    }

    fn hands(&mut self, bytes: usize) {
        // The client says of each part that it has room for more.
        self.of.credit.earn(bytes);
        if self.stream.unread_since.swap(self.of.now(), Ordering::Relaxed) == 0 {
            self.of.waits.notify_one();
        }
    }

    fn rests(&mut self) {
        self.stream.unread_since.store(0, Ordering::Relaxed);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut inner = self.of.lock();
        inner.open.remove(self.key);
        if inner.open.is_empty() {
            self.of.watch.serves(false);
        }
    }
}
