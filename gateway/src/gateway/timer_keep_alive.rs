//! Keeps a near timer armed while calls come in, so that the far timers of each call wake nobody.
//!
//! A timer that is due before every other one makes the runtime wake the thread that waits for the next: two system calls and
//! a context switch. Each call has such a timer (`sse_keepalive`, after which its answer becomes a stream) and hardly any is
//! ever due. With a nearer one armed they cost a list entry. Without calls there is no beat, and nothing wakes.

use crate::call::reply::Reply;
use crate::call::{Call, Handle};
use crate::runtime::Tasks;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// How near the timer is.
const BEAT: Duration = Duration::from_millis(25);

/// A layer that beats while calls come in.
#[derive(Clone)]
pub(super) struct TimerKeepAlive(Arc<Pace>);

#[derive(Default)]
struct Pace {
    called: AtomicBool,
    beats: AtomicBool,
    first: Notify,
}

impl TimerKeepAlive {
    /// The beat is a task of this level.
    pub(super) fn new(tasks: &Tasks) -> Self {
        let pace = Arc::new(Pace::default());
        tasks.spawn_until_end(keep(pace.clone()));
        Self(pace)
    }
}

async fn keep(pace: Arc<Pace>) {
    loop {
        pace.first.notified().await;
        pace.beats.store(true, Ordering::Relaxed);
        while pace.called.swap(false, Ordering::Relaxed) {
            tokio::time::sleep(BEAT).await;
        }
        pace.beats.store(false, Ordering::Relaxed);
    }
}

impl<H: Handle> tower::Layer<H> for TimerKeepAlive {
    type Service = PacedHandler<H>;

    fn layer(&self, inner: H) -> PacedHandler<H> {
        PacedHandler { inner, pace: self.0.clone() }
    }
}

/// A handler whose calls keep the beat.
pub(super) struct PacedHandler<H> {
    inner: H,
    pace: Arc<Pace>,
}

impl<H: Handle> Handle for PacedHandler<H> {
    fn handle(&self, call: Call) -> Reply {
        self.pace.called.store(true, Ordering::Relaxed);
        if !self.pace.beats.load(Ordering::Relaxed) {
            self.pace.first.notify_one();
        }
        self.inner.handle(call)
    }
}
