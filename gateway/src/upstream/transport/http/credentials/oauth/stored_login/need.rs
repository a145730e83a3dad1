//! Whether an upstream is shown a token at all: one that nothing says it of is only once it has asked, and somebody has logged in.

use crate::health::Cause;
use crate::runtime::Tasks;
use crate::upstream::config::Login;
use crate::upstream::transport::http::credentials::oauth::resource::is_described;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, Notify};
use tokio::time::Instant;

/// How often it is looked for a login.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(1);
/// So long an upstream that does not say that a person can log in is not asked again.
const DESCRIBED_MIN: Duration = Duration::from_secs(60);

/// What a refusal says of a login.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// A person is to log in.
    Needed(Cause),
    /// What to do.
    Advised(String),
}

/// Whether an upstream is shown a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Need {
    /// It is.
    Shown,
    /// Nothing says that it needs one: requests go without.
    Unasked,
    /// It has asked for one, and nobody has logged in: requests go without, since it may take some.
    Asked,
}

/// The same as it is now, and what the upstream says of itself.
pub(super) struct Needs {
    now: AtomicU8,
    is_shown: Notify,
    /// When it was looked for a login last, in milliseconds from a while before the beginning.
    looked: AtomicU64,
    began: Instant,
    /// Whether it says that a person can log in, and when it was asked.
    described: Mutex<Option<(Instant, bool)>>,
}

impl Needs {
    /// As it begins.
    pub(super) fn new(need: Need) -> Self {
        let (looked, began) = (AtomicU64::new(0), Instant::now());
        Self { now: AtomicU8::new(need as u8), is_shown: Notify::new(), looked, began, described: Mutex::default() }
    }

    pub(super) fn now(&self) -> Need {
        match self.now.load(Ordering::Relaxed) {
            0 => Need::Shown,
            1 => Need::Unasked,
            _ => Need::Asked,
        }
    }

    pub(super) fn becomes(&self, need: Need) {
        self.now.store(need as u8, Ordering::Relaxed);
        if need == Need::Shown {
            // A token that is known from before is not shown unlooked at.
            self.looked.store(0, Ordering::Relaxed);
            self.is_shown.notify_waiters();
        }
    }

    /// Whether it may be looked for a login: once a second at most.
    pub(super) fn may_look(&self) -> bool {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let (now, last) = (millis(self.began.elapsed() + LOOK_EVERY), self.looked.load(Ordering::Relaxed));
        let is_due = now.saturating_sub(last) >= millis(LOOK_EVERY);
        is_due && self.looked.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Resolves when the upstream is shown a token.
    pub(super) async fn until_shown(&self) {
        let is_shown = self.is_shown.notified();
        if self.now() != Need::Shown {
            is_shown.await;
        }
    }

    /// Whether the upstream says of itself that a person can log in to it; it is asked now and then, by one at a time.
    pub(super) async fn is_described(&self, login: &Login, tasks: &Tasks) -> bool {
        let mut known = self.described.lock().await;
        match *known {
            Some((asked, is_so)) if is_so || asked.elapsed() < DESCRIBED_MIN => is_so,
            _ => {
                let is_so = is_described(login, tasks).await;
                *known = Some((Instant::now(), is_so));
                is_so
            }
        }
    }
}
