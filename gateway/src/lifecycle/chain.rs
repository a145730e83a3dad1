//! Which gateways stand in one chain: none may be its own upstream, at whatever distance.

use arc_swap::ArcSwap;
use http::HeaderValue;
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};
use tokio::sync::Notify;

/// The header in which requests to upstreams say which gateways they come from.
pub const HEADER: http::HeaderName = http::HeaderName::from_static("trunkline-via");
/// The variable in which children find the configurations of all gateways above them.
pub const VARIABLE: &str = "TRUNKLINE_VIA";
/// So many gateways above this one are known, the newest.
const ABOVE_MAX: usize = 16;
/// How long a gateway's name is.
const NAME_CHARS: usize = 32;

static CHAIN: LazyLock<Chain> = LazyLock::new(Chain::new);
static CHILDREN: OnceLock<OsString> = OnceLock::new();

/// This gateway and those above it, by names that each makes for itself when it starts.
struct Chain {
    own: String,
    above: Mutex<Vec<String>>,
    /// What upstreams are told.
    told: ArcSwap<HeaderValue>,
    /// Rises after each change of what they are told.
    version: AtomicU64,
    changed: Notify,
}

/// What requests to upstreams say: the name of this gateway, and of those above it.
pub fn told() -> HeaderValue {
    HeaderValue::clone(&CHAIN.told.load())
}

/// Tells whether [`told`] may say something else by now.
pub fn version() -> u64 {
    CHAIN.version.load(Ordering::Acquire)
}

/// Resolves once upstreams are told something else than at this version.
pub async fn changed(since: u64) {
    CHAIN.changed(since).await;
}

/// A request came by way of these gateways; false where this is one of them.
#[must_use]
pub fn admits(via: &HeaderValue) -> bool {
    CHAIN.admits(via)
}

/// The gateway starts with these files; false where one with the very same started it. Children are told of it.
#[must_use]
pub fn begins(files: &[PathBuf]) -> bool {
    let inherited = std::env::var_os(VARIABLE).unwrap_or_default();
    let chain = extended(inherited, files);
    let begins = chain.is_some();
    chain.into_iter().for_each(|chain| _ = CHILDREN.set(chain));
    begins
}

/// What children find in [`VARIABLE`].
pub fn for_children() -> Option<&'static OsString> {
    CHILDREN.get().filter(|value| !value.is_empty())
}

/// The chain of configurations with these files at its end; `None` where they stand in it already.
fn extended(mut chain: OsString, files: &[PathBuf]) -> Option<OsString> {
    if files.is_empty() {
        return Some(chain);
    }
    let mut hasher = DefaultHasher::new();
    files.iter().for_each(|file| file.canonicalize().as_ref().unwrap_or(file).hash(&mut hasher));
    let name = format!("{:016x};", hasher.finish());
    if chain.to_string_lossy().contains(&name) {
        return None;
    }
    chain.push(name);
    Some(chain)
}

impl Chain {
    fn new() -> Self {
        let mut bytes = [0; NAME_CHARS / 2];
        getrandom::fill(&mut bytes).expect("the system's random source does not fail once it has worked");
        let own: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let told = ArcSwap::from_pointee(HeaderValue::from_str(&own).expect("digits can be sent"));
        Self { own, above: Mutex::default(), told, version: AtomicU64::new(0), changed: Notify::new() }
    }

    fn admits(&self, via: &HeaderValue) -> bool {
        let names = || via.to_str().unwrap_or_default().split(',').map(str::trim);
        if names().any(|name| name == self.own) {
            return false;
        }
        let is_name = |name: &&str| name.len() == NAME_CHARS && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        let mut above = self.above.lock().unwrap_or_else(PoisonError::into_inner);
        let known = above.len();
        for name in names().filter(is_name).take(ABOVE_MAX) {
            if !above.iter().any(|one| one == name) {
                above.push(name.to_owned());
            }
        }
        if above.len() > known {
            let too_many = above.len().saturating_sub(ABOVE_MAX);
            above.drain(..too_many);
            let all = format!("{},{}", self.own, above.join(","));
            self.told.store(HeaderValue::from_str(&all).expect("digits can be sent").into());
            self.version.fetch_add(1, Ordering::Release);
            self.changed.notify_waiters();
        }
        true
    }

    async fn changed(&self, since: u64) {
        loop {
            // It hears from its creation on: a change between the look and the wait is not missed.
            let changed = self.changed.notified();
            if self.version.load(Ordering::Acquire) != since {
                return;
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn via(text: &str) -> HeaderValue {
        HeaderValue::from_str(text).unwrap()
    }

    #[test]
    fn whoever_stands_above_is_never_called_from_below() {
        let [a, b, c] = [Chain::new(), Chain::new(), Chain::new()];
        let told = |chain: &Chain| HeaderValue::clone(&chain.told.load());
        assert!(!a.admits(&told(&a)), "its own");
        assert!(b.admits(&told(&a)) && c.admits(&told(&b)));
        assert!(!a.admits(&told(&c)), "by way of two");
        assert!(c.admits(&told(&a)), "two ways to one upstream are no loop");
        assert!(b.admits(&via("nonsense, , 7")) && told(&b).len() == 2 * NAME_CHARS + 1);
        (0..100).for_each(|number| assert!(a.admits(&via(&format!("{number:032x}")))));
        assert_eq!(told(&a).len(), (ABOVE_MAX + 1) * (NAME_CHARS + 1) - 1);
    }

    #[tokio::test]
    async fn a_change_is_told_once_to_whoever_waits_and_to_whoever_comes_late() {
        let chain = Chain::new();
        let version = || chain.version.load(Ordering::Acquire);
        let name = via(&"a".repeat(NAME_CHARS));
        let (before, _) = tokio::join!(async { chain.changed(0).await }, async { chain.admits(&name) });
        assert_eq!((before, version()), ((), 1));
        chain.changed(0).await;
        assert!(chain.admits(&name) && version() == 1, "known by now");
    }

    #[test]
    fn a_configuration_stands_in_a_chain_once() {
        let (one, other) = (vec![PathBuf::from("/no/such/a")], vec![PathBuf::from("/no/such/b")]);
        let first = extended(OsString::new(), &one).unwrap();
        let second = extended(first.clone(), &other).unwrap();
        assert_eq!((extended(second.clone(), &one), extended(second, &other)), (None, None));
        assert_eq!(extended(first.clone(), &[]), Some(first), "the demonstration");
    }
}
