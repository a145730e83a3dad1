//! Whether an upstream is shown a token at all: one that nothing says it of is only once it has asked, and somebody has logged in.

use crate::config::Login;
use crate::oauth::resource::{is_described, is_own};
use crate::runtime::Tasks;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout};

/// How often it is looked for a login.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(1);
/// So long an upstream that does not say that a person can log in is not asked again.
const DESCRIBED_MIN: Duration = Duration::from_secs(60);
/// So long it may take to say so, at all places together.
const DESCRIBED_WITHIN: Duration = Duration::from_secs(10);
/// So long a request waits for that: one that nobody else waits for, and one of a client.
const PATIENCE: [Duration; 2] = [DESCRIBED_WITHIN, Duration::from_secs(1)];

/// What to do where a login is asked for that nobody can make.
pub(super) const ELSEWHERE: &str = "it says at another origin what it is as a resource, which is not asked: set its credentials in `auth` or `headers`, or write its authorization server as `issuer` under `auth`";

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
    described: Arc<watch::Sender<Described>>,
}

/// When an upstream was asked whether it says that a person can log in, and what it said last.
#[derive(Clone, Copy, Default)]
struct Described {
    asked: Option<Instant>,
    is_so: Option<bool>,
}

/// While an upstream is asked. Where that is broken off before anything is known, the next one asks.
struct Asking(Arc<watch::Sender<Described>>);

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.send_if_modified(|described| {
            let is_broken_off = described.is_so.is_none();
            if is_broken_off {
                described.asked = None;
            }
            is_broken_off
        });
    }
}

impl Needs {
    /// As it begins.
    pub(super) fn new(need: Need) -> Self {
        let (looked, began) = (AtomicU64::new(0), Instant::now());
        Self { now: AtomicU8::new(need as u8), is_shown: Notify::new(), looked, began, described: Arc::default() }
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

    /// Whether a refusal without a token asks for a login: it names what the upstream says of itself, at its own origin, or that lies where it
    /// is known to. A request of a client waits for that only shortly, once.
    pub(super) async fn is_asked(&self, said: Option<&str>, login: &Login, is_of_client: bool, tasks: &Tasks) -> bool {
        if said.is_some_and(|url| is_own(login, url)) {
            return true;
        }
        let mut known = self.described.subscribe();
        let begins = self.described.send_if_modified(|described| {
            let is_due = described.asked.is_none_or(|asked| asked.elapsed() >= DESCRIBED_MIN);
            let begins = described.is_so != Some(true) && is_due;
            if begins {
                described.asked = Some(Instant::now());
            }
            begins
        });
        if begins {
            let (asking, login, level) = (Asking(self.described.clone()), login.clone(), tasks.clone());
            tasks.spawn_until_end(async move {
                let is_so = timeout(DESCRIBED_WITHIN, Box::pin(is_described(&login, &level))).await.unwrap_or(false);
                asking.0.send_modify(|described| described.is_so = Some(is_so));
            });
        } else if is_of_client {
            // Whoever has begun it waits; the others are told what is known.
            return known.borrow().is_so == Some(true);
        }
        let known = timeout(PATIENCE[usize::from(is_of_client)], known.wait_for(|described| described.is_so.is_some()));
        known.await.is_ok_and(|known| known.is_ok_and(|known| known.is_so == Some(true)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oauth::way::tests::login;
    use tokio::net::TcpListener;

    #[tokio::test(start_paused = true)]
    async fn no_call_waits_for_what_an_upstream_says_of_itself_longer_than_a_second_and_only_one_does() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let login = login("up", listener.local_addr().unwrap().port());
        let (needs, tasks) = (Needs::new(Need::Unasked), Tasks::new());
        let waited = async |is_of_client: bool| {
            let begun = Instant::now();
            assert!(!needs.is_asked(Some("https://elsewhere.example/"), &login, is_of_client, &tasks).await);
            begun.elapsed().as_secs()
        };
        // It takes connections, and says nothing.
        assert_eq!(waited(true).await, 1);
        assert_eq!(waited(true).await, 0);
        assert_eq!(waited(false).await, 9, "a connection that is made waits for all of it");
        for is_of_client in [true, false] {
            assert_eq!(waited(is_of_client).await, 0, "it is known");
        }
        let begun = Instant::now();
        assert!(needs.is_asked(Some(&format!("{}?x", login.resource)), &login, true, &tasks).await);
        assert_eq!(begun.elapsed().as_secs(), 0, "it says so itself");
        // A look that its connection has broken off is begun again.
        tokio::time::advance(DESCRIBED_MIN).await;
        let (needs, level) = (Needs::new(Need::Unasked), tasks.child());
        assert!(!needs.is_asked(None, &login, true, &level).await);
        level.end();
        level.ended().await;
        assert!(needs.described.borrow().asked.is_none());
        tasks.end();
    }
}
