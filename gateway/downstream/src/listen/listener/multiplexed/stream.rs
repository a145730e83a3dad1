//! One request on a connection of many: which pieces of its answer the client has not taken yet.

use bytes::Bytes;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use tokio::sync::Notify;

/// One request.
#[derive(Default)]
pub(super) struct Stream {
    answer: Mutex<Answer>,
    cut: Notify,
}

/// What was handed over of the answer, and is not written yet.
#[derive(Default)]
struct Answer {
    untaken: usize,
    /// When a piece was handed over last, in milliseconds; 0 where all were taken.
    unread_since: u64,
    /// Who waits for the last one to be taken.
    waits: Option<Waker>,
}

/// A piece of an answer, until it is written or given up.
struct Piece<T> {
    bytes: Bytes,
    stream: Arc<Stream>,
    _kept: T,
}

impl Stream {
    /// A piece is handed over at this time. What is to be kept until it is taken goes with it.
    pub(super) fn hands<T: Send + 'static>(self: &Arc<Self>, bytes: Bytes, now: u64, kept: T) -> Bytes {
        let mut answer = self.lock();
        answer.untaken += 1;
        answer.unread_since = now;
        drop(answer);
        Bytes::from_owner(Piece { bytes, stream: self.clone(), _kept: kept })
    }

    /// Whether every piece was taken.
    pub(super) fn is_taken(&self) -> bool {
        self.lock().untaken == 0
    }

    /// Resolves when every piece was taken.
    pub(super) fn poll_taken(&self, cx: &Context<'_>) -> Poll<()> {
        let mut answer = self.lock();
        if answer.untaken == 0 {
            return Poll::Ready(());
        }
        answer.waits = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Since when the client has taken nothing of a piece that is there for it.
    pub(super) fn unread_since(&self) -> Option<u64> {
        Some(self.lock().unread_since).filter(|since| *since > 0)
    }

    /// It is to be reset.
    pub(super) fn give_up(&self) {
        self.lock().unread_since = 0;
        self.cut.notify_one();
    }

    /// Resolves when it is to be reset.
    pub(super) async fn cut(&self) {
        self.cut.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, Answer> {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Stream {
    fn wake(self: Arc<Self>) {
        self.cut.notify_one();
    }
}

impl<T> AsRef<[u8]> for Piece<T> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl<T> Drop for Piece<T> {
    fn drop(&mut self) {
        let mut answer = self.stream.lock();
        answer.untaken -= 1;
        if answer.untaken > 0 {
            return;
        }
        answer.unread_since = 0;
        let waits = answer.waits.take();
        drop(answer);
        if let Some(waker) = waits {
            waker.wake();
        }
    }
}
