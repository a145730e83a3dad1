//! The access tokens that clients have shown and that were found good, for upstreams for which they are exchanged. While there is no such
//! upstream none is kept.

use crate::caller::Principal;
use dashmap::DashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::SystemTime;
use tokio::sync::watch;

/// Of so many principals tokens are kept at most; one whose tokens allow different things counts for each of them.
const KEPT_MAX: usize = 10_000;
/// So many tokens are kept at most that allow the same.
const SAME_MAX: usize = 4;

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
    /// Those of each principal that allow the same, the last one last.
    tokens: DashMap<Whose, Vec<Arc<SubjectToken>>>,
    changes: watch::Sender<()>,
}

/// The name of a principal, and what its token allows.
type Whose = (Arc<str>, Option<[u8; 32]>);

/// An access token of a client, which was found good.
pub struct SubjectToken {
    token: Box<str>,
    digest: [u8; 32],
    /// The expiry that it names. Its client may show it for a little longer, and the gateway shows it to nobody then.
    until: Option<SystemTime>,
    /// Whether it still counts.
    counts: Box<dyn Fn() -> bool + Send + Sync>,
}

impl SubjectToken {
    /// The token itself, for who exchanges it and for nobody else.
    pub fn secret(&self) -> &str {
        &self.token
    }

    /// Whether it may be shown to others.
    fn may_be_shown(&self) -> bool {
        self.until.is_none_or(|until| until > SystemTime::now()) && (self.counts)()
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

/// Whether both are one principal, for which a token of one may be exchanged in place of one of the other: where tokens are kept, only one
/// that allows the same.
pub fn is_as_good(one: &Principal, other: &Principal) -> bool {
    one.is_as(other) || (one == other && KEPT.wanted.load(Ordering::SeqCst) == 0)
}

/// A token of a principal was found good, up to a moment, and is as long as it `counts`.
pub fn note(
    principal: &Principal,
    (token, digest): (&[u8], [u8; 32]),
    until: Option<SystemTime>,
    counts: impl Fn() -> bool + Send + Sync + 'static,
) {
    if KEPT.wanted.load(Ordering::SeqCst) == 0 {
        return;
    }
    let whose = whose(principal);
    let is_known = |kept: &Arc<SubjectToken>| kept.digest == digest && (kept.counts)();
    if KEPT.tokens.get(&whose).is_some_and(|kept| kept.iter().any(is_known)) {
        return;
    }
    let Ok(text) = std::str::from_utf8(token) else { return };
    if KEPT.tokens.len() >= KEPT_MAX {
        KEPT.tokens.retain(|_, kept| kept.iter().any(|kept| (kept.counts)()));
        let first = KEPT.tokens.iter().next().map(|kept| kept.key().clone()).filter(|_| KEPT.tokens.len() >= KEPT_MAX);
        if let Some(first) = first {
            KEPT.tokens.remove(&first);
            // Those that make room are noted again with the next request of their clients.
            KEPT.generation.fetch_add(1, Ordering::SeqCst);
        }
    }
    let noted = Arc::new(SubjectToken { token: text.into(), digest, until, counts: Box::new(counts) });
    let mut kept = KEPT.tokens.entry(whose).or_default();
    kept.retain(|kept| (kept.counts)());
    if kept.len() >= SAME_MAX {
        // What is left outlasts what goes: while one of them counts, one that counts is kept.
        let ends = |at: &usize| (kept[*at].until.is_none(), kept[*at].until);
        if let Some(first) = (0..kept.len()).min_by_key(ends) {
            kept.remove(first);
        }
    }
    kept.push(noted);
    drop(kept);
    KEPT.changes.send_replace(());
}

/// The tokens of a principal that allow what its own does and still count, the last one first.
pub fn all_of(principal: &Principal) -> Vec<Arc<SubjectToken>> {
    let kept = KEPT.tokens.get(&whose(principal));
    let counting = kept.iter().flat_map(|kept| kept.iter().rev()).filter(|kept| kept.may_be_shown());
    counting.cloned().collect()
}

/// The last one of them.
pub fn of(principal: &Principal) -> Option<Arc<SubjectToken>> {
    let kept = KEPT.tokens.get(&whose(principal))?;
    kept.iter().rev().find(|kept| kept.may_be_shown()).cloned()
}

fn whose(principal: &Principal) -> Whose {
    (principal.shared_name(), principal.allows())
}

/// Tells when a token is kept that was not.
pub fn changes() -> watch::Receiver<()> {
    KEPT.changes.subscribe()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    #[test]
    fn tokens_are_kept_while_they_are_wanted_and_count_and_the_last_one_of_each_principal_is_given() {
        let (one, other) = (Principal::named("oauth:one x y"), Principal::named("oauth:other x y"));
        let secret = |of: &Principal| super::of(of).map(|kept| kept.secret().to_owned());
        note(&one, (b"canary", [0; 32]), None, || true);
        let before = generation();
        let wanted = Wanted::new();
        assert!(generation() > before && secret(&one).is_none(), "it came before");
        let (first, second) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicBool::new(true)));
        let while_it = |counts: &Arc<AtomicBool>| {
            let counts = counts.clone();
            move || counts.load(Ordering::SeqCst)
        };
        note(&one, (b"first", [1; 32]), None, while_it(&first));
        note(&other, (b"others", [2; 32]), None, || true);
        note(&one, (b"second", [3; 32]), None, while_it(&second));
        assert_eq!((secret(&one).as_deref(), secret(&other).as_deref()), (Some("second"), Some("others")));
        assert!(secret(&one.clone().allowed("x")).is_none(), "it allows something else");
        note(&one, (b"first", [1; 32]), None, while_it(&first));
        assert_eq!(secret(&one).as_deref(), Some("second"), "the other one is known");
        second.store(false, Ordering::SeqCst);
        assert_eq!(secret(&one).as_deref(), Some("first"), "the other one has ended");
        first.store(false, Ordering::SeqCst);
        assert!(secret(&one).is_none());
        let ends = |seconds| SystemTime::now() + Duration::from_secs(seconds);
        note(&one, (b"long", [9; 32]), Some(ends(10_000)), || true);
        (10..30).for_each(|n| note(&one, (b"short", [n; 32]), Some(ends(1000 + u64::from(n))), || true));
        let kept = all_of(&one);
        assert!(kept.len() == SAME_MAX && kept.last().unwrap().secret() == "long", "the one that lasts stays");
        note(&other, (b"over", [4; 32]), Some(SystemTime::now()), || true);
        assert_eq!(secret(&other).as_deref(), Some("others"), "the last one has expired, though it is still taken");
        assert!(!format!("{:?}", super::of(&other)).contains("others"));
        drop(wanted);
        assert!(secret(&other).is_none());
    }
}
