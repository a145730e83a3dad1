//! One authorization server: its keys, fetched by one for all, and how often.

use super::keys::{Key, KeySet};
use super::provider::Provider;
use super::questions::Questions;
use super::refused::Refused;
use super::token::{self, Judged, Unjudged};
use crate::call::caller::credential::Revocation;
use crate::config::{Issuer, Resource};
use crate::runtime::Tasks;
use crate::runtime::complaints::{Complaints, left_unsaid};
use arc_swap::ArcSwapOption;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// How often the keys are read while nobody misses one.
const READ_EVERY: Duration = Duration::from_secs(600);
/// Keys that could not be read anew count no longer than this.
const KEPT_MAX: Duration = Duration::from_secs(3600);
/// After an answer nobody asks again for so long, whatever key is named.
const REST: Duration = Duration::from_secs(30);
/// After the first failure, doubling to [`REST`].
const PAUSE: Duration = Duration::from_secs(1);
/// So long a request waits for keys, or for what is said of its token.
const WAITS_MAX: Duration = Duration::from_secs(10);
/// How often it is said that an authorization server fails.
const SAID_EVERY: Duration = Duration::from_secs(60);

/// An authorization server while its configuration counts.
pub(super) struct KnownIssuer {
    pub(super) issuer: Issuer,
    provider: Arc<dyn Provider>,
    /// What counts as long as its configuration does.
    pub(super) counts: Revocation,
    /// What sessions count by that were opened with its tokens.
    pub(super) sessions: Revocation,
    pub(super) questions: Questions,
    keys: ArcSwapOption<Held>,
    /// Grows with each answer, good or bad.
    rounds: watch::Sender<u64>,
    pace: Mutex<Pace>,
    tasks: Tasks,
    complaints: Complaints,
}

/// Keys, and when they were read.
struct Held {
    keys: KeySet,
    at: Instant,
}

/// When the keys may be asked for.
struct Pace {
    is_asking: bool,
    not_before: Instant,
    pause: Duration,
}

impl KnownIssuer {
    /// Reads its keys from now on, now and then, as long as somebody holds it.
    pub(super) fn start(issuer: Issuer, provider: Arc<dyn Provider>, tasks: &Tasks) -> Arc<Self> {
        let pace = Pace { is_asking: false, not_before: Instant::now(), pause: PAUSE };
        let (counts, tasks) = (Revocation::possible(), tasks.child());
        let known = Arc::new(Self {
            issuer,
            provider,
            sessions: counts.below(),
            counts,
            questions: Questions::default(),
            keys: ArcSwapOption::empty(),
            rounds: watch::Sender::new(0),
            pace: Mutex::new(pace),
            tasks,
            complaints: Complaints::every(SAID_EVERY),
        });
        known.tasks.spawn_until_end(keep_read(Arc::downgrade(&known)));
        known
    }

    /// Nothing of it counts any more.
    pub(super) fn end(&self) {
        self.counts.revoke();
        self.tasks.end();
    }

    /// Judges a token by a key that is known; `None` where its key is not.
    pub(super) fn judge(
        &self,
        token: &str,
        said: &Unjudged,
        resource: &Resource,
    ) -> Option<Result<(Judged, Revocation), Refused>> {
        if !self.issuer.algorithms.contains(&said.algorithm) {
            return Some(Err(Refused::Invalid("the token is not signed as its authorization server signs")));
        }
        let held = self.keys.load();
        let held = held.as_ref().filter(|held| held.at.elapsed() < KEPT_MAX)?;
        let mut last = None;
        for key in held.keys.of(said.key.as_deref(), said.algorithm) {
            let Key { counts, .. } = key;
            match token::judge(token, &self.issuer, resource, key, said.algorithm) {
                Ok(judged) => return Some(Ok((judged, counts.clone()))),
                Err(why) => last = Some(Err(why)),
            }
        }
        last
    }

    /// Whether any keys are known that count.
    pub(super) fn has_keys(&self) -> bool {
        self.keys.load().as_ref().is_some_and(|held| held.at.elapsed() < KEPT_MAX)
    }

    /// Has the keys read, where that may be done now, and waits for that; or for whoever does it already.
    pub(super) async fn read_keys(self: &Arc<Self>) {
        let mut rounds = self.rounds.subscribe();
        {
            let mut pace = self.lock();
            if !pace.is_asking {
                if Instant::now() < pace.not_before {
                    return;
                }
                pace.is_asking = true;
                let known = self.clone();
                // Whoever asked first may leave: the others wait for the same answer.
                self.tasks.spawn_until_end(async move { known.ask().await });
            }
        }
        let _in_time = tokio::time::timeout(WAITS_MAX, rounds.changed()).await;
    }

    /// What it says of a token.
    pub(super) async fn introspect(&self, token: &str) -> Result<Vec<u8>, String> {
        let answer = tokio::time::timeout(WAITS_MAX, self.provider.introspect(token)).await;
        answer.unwrap_or_else(|_| Err(format!("it does not answer within {} s", WAITS_MAX.as_secs())))
    }

    async fn ask(&self) {
        let answer = self.provider.keys().await;
        let before = self.keys.load_full();
        let read = answer.and_then(|body| KeySet::read(&body, &self.counts, before.as_ref().map(|held| &held.keys)));
        let rest = match read {
            Ok(keys) => {
                if before.is_none() {
                    tracing::info!(issuer = &*self.issuer.name, keys = keys.len(), "keys of authorization server read");
                }
                self.keys.store(Some(Arc::new(Held { keys, at: Instant::now() })));
                self.lock().pause = PAUSE;
                REST
            }
            Err(why) => {
                self.complain("keys", &why);
                let mut pace = self.lock();
                let rest = pace.pause;
                pace.pause = (rest * 2).min(REST);
                rest
            }
        };
        let mut pace = self.lock();
        (pace.is_asking, pace.not_before) = (false, Instant::now() + rest);
        drop(pace);
        self.rounds.send_modify(|round| *round += 1);
    }

    /// Says that it fails, now and then.
    pub(super) fn complain(&self, kind: &'static str, why: &str) {
        if let Some(more) = self.complaints.take(kind) {
            let (issuer, more) = (&*self.issuer.name, left_unsaid(more));
            tracing::warn!(issuer, more, "authorization server of clients cannot be asked for {kind}: {why}");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the keys now, again soon where that failed, and then now and then: one that is taken back is to be missed.
async fn keep_read(known: Weak<KnownIssuer>) {
    loop {
        let Some(issuer) = known.upgrade() else { return };
        issuer.read_keys().await;
        let pause = match issuer.has_keys() {
            true => READ_EVERY,
            false => issuer.lock().not_before.saturating_duration_since(Instant::now()).max(PAUSE),
        };
        drop(issuer);
        tokio::time::sleep(pause).await;
    }
}
