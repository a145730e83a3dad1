//! The requests that are open on one connection: counted, and each cut alone where its client takes nothing of the answer.

use super::stream::Stream;
use crate::listen::connections::{Arrival, Beside};
use crate::listen::timeouts::{ConnectionWatch, Guard};
use crate::memory::Refusals;
use crate::memory::account::Kind;
use crate::memory::budget::{Budget, Charge, UNCOUNTED};
use crate::runtime::timer::late::{passed, passes};
use crate::runtime::watched::Credit;
use bytes::Bytes;
use slab::Slab;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// What an open request is counted as: its head, and what of the answer lies in the connection.
const STREAM_BYTES: usize = 16 * 1024;
/// So many frames are earned with a part of an answer.
const WITH_A_PART: u64 = 4;
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

/// A request is open as long as this lives.
pub(super) struct Open {
    of: Arc<Streams>,
    key: usize,
    stream: Arc<Stream>,
    /// What it has taken; none where that goes with the last piece of the answer.
    place: Option<(Option<Beside>, Charge)>,
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
        Some(Open { of: self.clone(), key, stream, place: Some((beside, charge)) })
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

    /// Resolves when nothing is open any more, looked at so often. A client that does not say that it has read the last word is not
    /// waited for.
    pub(super) async fn rests(&self, look: Duration) {
        loop {
            passes(look).await;
            if self.lock().open.is_empty() {
                return;
            }
        }
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
        inner.open.iter().filter_map(|(_, stream)| stream.unread_since()).min()
    }

    fn cut_before(&self, time: u64) {
        for (_, stream) in &self.lock().open {
            if stream.unread_since().is_some_and(|since| since <= time) {
                stream.give_up();
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

impl Guard for Open {
    fn watch(&self) -> &Arc<ConnectionWatch> {
        &self.of.watch
    }

    fn cut(&self) -> Waker {
        Waker::from(self.stream.clone())
    }

    fn hands(&mut self, piece: Bytes, is_last: bool) -> Bytes {
        // The client says of each part that it has room for more.
        self.of.credit.earn(WITH_A_PART, piece.len());
        let now = self.of.now();
        if self.stream.is_taken() {
            self.of.waits.notify_one();
        }
        let Some(place) = self.place.take_if(|_| is_last && piece.len() <= UNCOUNTED && self.stream.is_taken()) else {
            return self.stream.hands(piece, now, ());
        };
        // The end of a short answer goes out with it, in one frame; what it has taken is free when the client has it.
        self.stream.hands(piece, now, place)
    }

    fn may_end(&self) -> bool {
        self.place.is_none() || self.stream.is_taken()
    }

    fn poll_taken(&mut self, cx: &Context<'_>) -> Poll<()> {
        self.stream.poll_taken(cx)
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
