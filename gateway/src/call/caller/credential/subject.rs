//! The access tokens that clients have shown and that were found good, for upstreams for which they are exchanged. While there is no such
//! upstream none is kept.

use crate::call::caller::Principal;
use dashmap::DashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use tokio::sync::watch;

/// Of so many principals tokens are kept at most.
const KEPT_MAX: usize = 10_000;

static KEPT: LazyLock<Kept> = LazyLock::new(|| Kept {
    wanted: AtomicUsize::new(0),
    generation: AtomicU64::new(0),
    tokens: DashMap::new(),
    changes: watch::Sender::new(()),
});

struct Kept {
    /// How many have a use for them.
    wanted: AtomicUsize,
    /// How often they came to be wanted.
    generation: AtomicU64,
    /// The last one of each principal, by its name.
    tokens: DashMap<Arc<str>, Arc<SubjectToken>>,
    changes: watch::Sender<()>,
}

/// An access token of a client, which was found good.
pub struct SubjectToken {
    token: Box<str>,
    digest: [u8; 32],
    /// Whether it still counts.
    counts: Box<dyn Fn() -> bool + Send + Sync>,
}

impl SubjectToken {
    /// The token itself, for who exchanges it and for nobody else.
    pub fn secret(&self) -> &str {
        &self.token
    }

    /// Its SHA-256.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }
}

/// Never shown.
impl fmt::Debug for SubjectToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SubjectToken")
    }
}

/// Has tokens kept for as long as it is there.
#[derive(Debug)]
pub struct Wanted(());

impl Wanted {
    /// From now on they are.
    #[allow(clippy::new_without_default, reason = "what it does shows where it is made")]
    pub fn new() -> Self {
        if KEPT.wanted.fetch_add(1, Ordering::SeqCst) == 0 {
            KEPT.generation.fetch_add(1, Ordering::SeqCst);
        }
        Self(())
    }
}

impl Drop for Wanted {
    fn drop(&mut self) {
        if KEPT.wanted.fetch_sub(1, Ordering::SeqCst) == 1 {
            KEPT.tokens.clear();
        }
    }
}

/// Grows when tokens come to be wanted that were not: those that were let in before are to be looked at anew.
pub fn generation() -> u64 {
    KEPT.generation.load(Ordering::SeqCst)
}

/// A token of a principal was found good, and is as long as it `counts`.
pub fn note(principal: &Principal, token: &[u8], digest: [u8; 32], counts: impl Fn() -> bool + Send + Sync + 'static) {
    if KEPT.wanted.load(Ordering::SeqCst) == 0 {
        return;
    }
    let is_known = |kept: &SubjectToken| kept.digest == digest && (kept.counts)();
    if KEPT.tokens.get(principal.name()).is_some_and(|kept| is_known(&kept)) {
        return;
    }
    let Ok(text) = std::str::from_utf8(token) else { return };
    if KEPT.tokens.len() >= KEPT_MAX {
        KEPT.tokens.retain(|_, kept| (kept.counts)());
        // One that makes room is shown again with the next connection of its client.
        let first = KEPT.tokens.iter().next().map(|kept| kept.key().clone()).filter(|_| KEPT.tokens.len() >= KEPT_MAX);
        first.into_iter().for_each(|name| drop(KEPT.tokens.remove(&name)));
    }
    let kept = SubjectToken { token: text.into(), digest, counts: Box::new(counts) };
    KEPT.tokens.insert(principal.shared_name(), Arc::new(kept));
    KEPT.changes.send_replace(());
}

/// The last token of a principal, where that still counts.
pub fn of(principal: &Principal) -> Option<Arc<SubjectToken>> {
    let kept = KEPT.tokens.get(principal.name())?;
    (kept.counts)().then(|| kept.clone())
}

/// Tells when a token is kept that was not.
pub fn changes() -> watch::Receiver<()> {
    KEPT.changes.subscribe()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn tokens_are_kept_while_they_are_wanted_and_count_and_the_last_one_of_each_principal_alone() {
        let (one, other) = (Principal::named("oauth:one x y"), Principal::named("oauth:other x y"));
        let secret = |of: &Principal| super::of(of).map(|kept| kept.secret().to_owned());
        note(&one, b"canary", [0; 32], || true);
        let before = generation();
        let wanted = Wanted::new();
        assert!(generation() > before && secret(&one).is_none(), "it came before");
        let (first, second) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicBool::new(true)));
        let while_it = |counts: &Arc<AtomicBool>| {
            let counts = counts.clone();
            move || counts.load(Ordering::SeqCst)
        };
        note(&one, b"first", [1; 32], while_it(&first));
        note(&other, b"others", [2; 32], || true);
        note(&one, b"second", [3; 32], while_it(&second));
        assert_eq!((secret(&one).as_deref(), secret(&other).as_deref()), (Some("second"), Some("others")));
        first.store(false, Ordering::SeqCst);
        assert!(secret(&one).is_some());
        second.store(false, Ordering::SeqCst);
        assert!(secret(&one).is_none());
        assert!(!format!("{:?}", super::of(&other)).contains("others"));
        drop(wanted);
        assert!(secret(&other).is_none());
    }
}
