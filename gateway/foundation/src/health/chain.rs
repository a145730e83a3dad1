//! Which gateways stand in one chain: none may be its own upstream, at whatever distance.
//!
//! A request to an upstream says from which gateway it comes, and an answer to such a request says which gateways lie below. A
//! gateway refuses a request that comes from itself, or from one that its own upstreams lead to. What is remembered comes from
//! upstreams alone, which the operator has chosen; what a client says of its way is judged for that one request and kept nowhere.

use arc_swap::ArcSwap;
use http::{HeaderMap, HeaderName, HeaderValue};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};
use tokio::sync::Notify;

/// The header in which requests to upstreams say which gateway they come from.
pub const VIA: HeaderName = HeaderName::from_static("trunkline-via");
/// The header in which answers to such requests say which gateways lie below.
pub const LEADS_TO: HeaderName = HeaderName::from_static("trunkline-leads-to");
/// The variable in which children find the configurations of all gateways above them.
pub const VARIABLE: &str = "TRUNKLINE_VIA";
/// So many gateways below this one are known.
const BELOW_MAX: usize = 64;
/// How long a gateway's name is.
const NAME_CHARS: usize = 32;

static CHAIN: LazyLock<Arc<Chain>> = LazyLock::new(|| Arc::new(Chain::new()));
static CHILDREN: OnceLock<OsString> = OnceLock::new();

/// This gateway and those below it, by names that each makes for itself when it starts.
struct Chain {
    own: String,
    /// By upstream: the gateways that it leads to, as it last said itself.
    below: Mutex<BTreeMap<u64, Vec<String>>>,
    /// This gateway and all below.
    all: ArcSwap<Vec<String>>,
    /// Counts upstreams.
    next: AtomicU64,
    /// Rises whenever something says that an upstream leads back here.
    version: AtomicU64,
    changed: Notify,
}

/// Which gateways one upstream leads to; forgotten when it is dropped.
pub struct Below {
    chain: Arc<Chain>,
    number: u64,
}

/// What requests to upstreams say: the name of this gateway.
pub fn own() -> HeaderValue {
    CHAIN.header(&CHAIN.own)
}

/// What answers to other gateways say: the names of this one and of those below it.
pub fn leads_to() -> HeaderValue {
    CHAIN.leads_to()
}

/// Rises whenever something says that an upstream leads back here.
pub fn version() -> u64 {
    CHAIN.version.load(Ordering::Acquire)
}

/// Resolves once the version is another.
pub async fn changed(since: u64) {
    CHAIN.changed(since).await;
}

/// A request came by way of these gateways; false where one of them is this one, or lies below it.
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

/// The names in a header; what is no name is passed over.
fn names(header: &HeaderValue) -> impl Iterator<Item = &str> {
    let all = header.to_str().unwrap_or_default().split(',').map(str::trim);
    all.filter(|name| name.len() == NAME_CHARS && name.bytes().all(|byte| byte.is_ascii_hexdigit())).take(BELOW_MAX)
}

impl Default for Below {
    fn default() -> Self {
        Self::of(&CHAIN)
    }
}

impl Below {
    fn of(chain: &Arc<Chain>) -> Self {
        Self { chain: chain.clone(), number: chain.next.fetch_add(1, Ordering::Relaxed) }
    }

    /// The upstream has answered with these headers.
    pub fn heard(&self, headers: &HeaderMap) {
        // Few headers are walked faster than one is looked up.
        let Some((_, header)) = headers.iter().find(|(name, _)| **name == LEADS_TO) else { return };
        self.chain.heard(self.number, header);
    }
}

impl Drop for Below {
    fn drop(&mut self) {
        let mut below = self.chain.lock();
        if below.remove(&self.number).is_some() {
            self.chain.gather(&below);
        }
    }
}

impl Chain {
    fn new() -> Self {
        let mut bytes = [0; NAME_CHARS / 2];
        getrandom::fill(&mut bytes).expect("the system's random source does not fail once it has worked");
        let own: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Self {
            all: ArcSwap::from_pointee(vec![own.clone()]),
            own,
            below: Mutex::default(),
            next: AtomicU64::new(0),
            version: AtomicU64::new(0),
            changed: Notify::new(),
        }
    }

    fn header(&self, text: &str) -> HeaderValue {
        HeaderValue::from_str(text).expect("digits and commas can be sent")
    }

    fn leads_to(&self) -> HeaderValue {
        self.header(&self.all.load().join(","))
    }

    fn admits(&self, via: &HeaderValue) -> bool {
        let all = self.all.load();
        let known = names(via).find(|name| all.iter().any(|one| one == name));
        // The one that asks is below: the upstream that leads to it is asked whether it leads back here. Nothing is
        // believed of it, since the request may be anybody's.
        if known.is_some_and(|name| name != self.own) {
            self.has_changed();
        }
        known.is_none()
    }

    fn heard(&self, number: u64, header: &HeaderValue) {
        let mut below = self.lock();
        let is_known = |known: &Vec<String>| known.iter().map(String::as_str).eq(names(header));
        if below.get(&number).is_some_and(is_known) {
            return;
        }
        let now: Vec<String> = names(header).map(str::to_owned).collect();
        let leads_back = now.contains(&self.own);
        below.insert(number, now);
        self.gather(&below);
        drop(below);
        if leads_back {
            self.has_changed();
        }
    }

    /// This one first, so that it is among those that are told however many there are.
    fn gather(&self, below: &BTreeMap<u64, Vec<String>>) {
        let mut all = vec![self.own.clone()];
        for name in below.values().flatten() {
            if all.len() < BELOW_MAX && !all.contains(name) {
                all.push(name.clone());
            }
        }
        self.all.store(Arc::new(all));
    }

    fn has_changed(&self) {
        self.version.fetch_add(1, Ordering::Release);
        self.changed.notify_waiters();
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

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Vec<String>>> {
        self.below.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn via(text: &str) -> HeaderValue {
        HeaderValue::from_str(text).unwrap()
    }

    fn told(chain: &Chain) -> HeaderMap {
        HeaderMap::from_iter([(LEADS_TO, chain.leads_to())])
    }

    #[test]
    fn a_gateway_is_refused_by_each_that_leads_to_it() {
        let [a, b, c] = [(); 3].map(|()| Arc::new(Chain::new()));
        let own = |chain: &Chain| via(&chain.own);
        assert!(!a.admits(&own(&a)), "its own");
        let (of_a, of_b) = (Below::of(&a), Below::of(&b));
        of_b.heard(&told(&c));
        of_a.heard(&told(&b));
        assert!(b.admits(&own(&a)) && c.admits(&own(&b)) && c.admits(&own(&a)), "two ways to one are no loop");
        assert!(!a.admits(&own(&c)) && !a.admits(&own(&b)), "at whatever distance");
        let of_c = Below::of(&c);
        let before = c.version.load(Ordering::Acquire);
        of_c.heard(&told(&a));
        assert!(c.version.load(Ordering::Acquire) > before, "what it leads to leads back");
        drop(of_a);
        assert!(a.admits(&own(&c)), "an upstream that is gone leads nowhere");
    }

    #[test]
    fn what_a_client_says_is_judged_and_not_kept() {
        let a = Arc::new(Chain::new());
        let before = a.leads_to();
        (0..100).for_each(|number| assert!(a.admits(&via(&format!("{number:032x}")))));
        assert!(a.admits(&via("nonsense, , 7")) && !a.admits(&via(&a.own)));
        assert_eq!((a.leads_to(), a.version.load(Ordering::Acquire)), (before, 0));
    }

    #[test]
    fn so_many_below_are_known_and_this_one_always() {
        let a = Arc::new(Chain::new());
        let many = (0..500).map(|number| format!("{number:032x}")).collect::<Vec<_>>().join(",");
        let below = [(); 3].map(|()| Below::of(&a));
        below.iter().for_each(|one| one.heard(&HeaderMap::from_iter([(LEADS_TO, via(&many))])));
        let all = a.leads_to();
        assert_eq!(all.len(), BELOW_MAX * (NAME_CHARS + 1) - 1);
        assert!(all.to_str().unwrap().starts_with(&a.own));
    }

    #[tokio::test]
    async fn a_change_is_told_to_whoever_waits_and_to_whoever_comes_late() {
        let chain = Arc::new(Chain::new());
        let below = Below::of(&chain);
        let back = HeaderMap::from_iter([(LEADS_TO, via(&chain.own))]);
        tokio::join!(async { chain.changed(0).await }, async { below.heard(&back) });
        chain.changed(0).await;
        below.heard(&back);
        assert_eq!(chain.version.load(Ordering::Acquire), 1, "known by now");
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
