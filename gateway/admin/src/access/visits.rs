//! Who is let in at the page: one-time links, and the visits that a link or the token opens.
//!
//! A visit has two halves. The cookie is one that no script can read; the proof is a header that only a script of the page can send.
//! A browser sends a cookie to every port of a host, so neither half opens anything by itself.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderMap;
use http::header::{COOKIE, HOST, ORIGIN};
use sha2::{Digest, Sha256};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The header with the second half of a visit.
const PROOF: &str = "x-trunkline-page";
/// A link opens a visit for so long, once.
pub(crate) const LINK_WITHIN: Duration = Duration::from_secs(60);
/// So many links wait to be followed; the oldest goes.
const LINKS_MAX: usize = 16;
/// A visit ends so long after it was last used, and so long after it began.
const IDLE_MAX: Duration = Duration::from_secs(60 * 60);
const VISIT_MAX: Duration = Duration::from_secs(12 * 60 * 60);
/// So many visits are known; the one that was used least recently goes.
const VISITS_MAX: usize = 32;

/// So many cookies of its name are looked at in one request.
const COOKIES_MAX: usize = 8;

/// All links and visits of one gateway. Clones are the same.
#[derive(Clone, Default)]
pub struct Visits(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// Where the page is served; `None` where it is not.
    address: Option<SocketAddr>,
    book: Mutex<Book>,
}

#[derive(Default)]
struct Book {
    links: VecDeque<(Secret, Instant)>,
    visits: Vec<Visit>,
}

struct Visit {
    cookie: Secret,
    proof: Secret,
    began: Instant,
    used: Instant,
}

/// The digest of a secret: what is compared, so that the time says nothing of how much was right.
#[derive(PartialEq, Eq)]
struct Secret([u8; 32]);

impl Secret {
    fn of(text: &str) -> Self {
        Self(Sha256::digest(text).into())
    }
}

/// Both halves of a visit that has just begun.
pub(crate) struct Opened {
    pub(crate) cookie: String,
    pub(crate) proof: String,
}

impl Visits {
    /// Visits of the page at this address.
    pub fn at(address: Option<SocketAddr>) -> Self {
        Self(Arc::new(Inner { address, book: Mutex::default() }))
    }

    /// A link to the page that opens one visit, where the page is served.
    pub(crate) fn link(&self) -> Option<String> {
        let address = reachable(self.0.address?);
        let code = fresh()?;
        let mut book = self.book();
        book.links.retain(|(_, made)| made.elapsed() < LINK_WITHIN);
        if book.links.len() == LINKS_MAX {
            book.links.pop_front();
        }
        book.links.push_back((Secret::of(&code), Instant::now()));
        // Behind the hash: a browser sends that to nobody.
        Some(format!("http://{address}/ui#enter={code}"))
    }

    /// Opens a visit for a link, which is used up.
    pub(crate) fn follow(&self, code: &str) -> Option<Opened> {
        let code = Secret::of(code);
        {
            let mut book = self.book();
            book.links.retain(|(_, made)| made.elapsed() < LINK_WITHIN);
            let at = book.links.iter().position(|(known, _)| *known == code)?;
            book.links.remove(at);
        }
        self.open()
    }

    /// Opens a visit.
    pub(crate) fn open(&self) -> Option<Opened> {
        let opened = Opened { cookie: fresh()?, proof: fresh()? };
        let (cookie, proof, now) = (Secret::of(&opened.cookie), Secret::of(&opened.proof), Instant::now());
        let mut book = self.book();
        book.visits.retain(Visit::is_on);
        if book.visits.len() == VISITS_MAX
            && let Some((oldest, _)) = book.visits.iter().enumerate().min_by_key(|(_, visit)| visit.used)
        {
            book.visits.swap_remove(oldest);
        }
        book.visits.push(Visit { cookie, proof, began: now, used: now });
        Some(opened)
    }

    /// Whether a request belongs to a visit, which goes on with it.
    pub(crate) fn admits(&self, headers: &HeaderMap) -> bool {
        self.with(headers, |book, at| book.visits[at].used = Instant::now()).is_some()
    }

    /// Ends the visit of a request.
    pub(crate) fn leave(&self, headers: &HeaderMap) {
        self.with(headers, |book, at| {
            book.visits.swap_remove(at);
        });
    }

    fn with(&self, headers: &HeaderMap, act: impl FnOnce(&mut Book, usize)) -> Option<()> {
        let cookies: Vec<_> = self.cookies_of(headers).take(COOKIES_MAX).map(Secret::of).collect();
        let proof = Secret::of(headers.get(PROOF)?.to_str().ok()?);
        let mut book = self.book();
        let is_it = |visit: &Visit| cookies.contains(&visit.cookie) && visit.proof == proof && visit.is_on();
        let at = book.visits.iter().position(is_it)?;
        act(&mut book, at);
        Some(())
    }

    /// The name of the cookie: gateways on several ports of a host have one each.
    pub(crate) fn cookie_name(&self) -> String {
        format!("trunkline_page_{}", self.0.address.map_or(0, |address| address.port()))
    }

    /// What may be it: another server of the same host can set a cookie of this name beside ours.
    fn cookies_of<'a>(&self, headers: &'a HeaderMap) -> impl Iterator<Item = &'a str> {
        let name = self.cookie_name();
        let all = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let pairs = all.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.filter(move |(key, _)| *key == name).map(|(_, value)| value)
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Visit {
    fn is_on(&self) -> bool {
        self.used.elapsed() < IDLE_MAX && self.began.elapsed() < VISIT_MAX
    }
}

/// Whether a request comes from a page of the very host that it is sent to.
pub(crate) fn is_of_own_origin(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
    let (Some(origin), Some(host)) = (text(ORIGIN), text(HOST)) else { return false };
    origin.split_once("://").is_some_and(|(_, authority)| authority.eq_ignore_ascii_case(host))
}

/// 256 bits that nobody can guess; `None` where the system has none.
fn fresh() -> Option<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).ok()?;
    Some(URL_SAFE_NO_PAD.encode(bytes))
}

/// "Every address" is none that a browser can open.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visits() -> Visits {
        Visits::at(Some(([0, 0, 0, 0], 9808).into()))
    }

    fn headers(opened: &Opened) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(COOKIE, format!("a=b; trunkline_page_9808={}", opened.cookie).parse().unwrap());
        headers.insert(PROOF, opened.proof.parse().unwrap());
        headers
    }

    fn code(link: &str) -> &str {
        link.split_once("#enter=").unwrap().1
    }

    #[tokio::test(start_paused = true)]
    async fn a_link_opens_one_visit_within_a_minute() {
        let visits = visits();
        let link = visits.link().unwrap();
        assert!(link.starts_with("http://127.0.0.1:9808/ui#enter="), "{link}");
        assert!(visits.follow("x").is_none());
        let opened = visits.follow(code(&link)).unwrap();
        assert!(visits.admits(&headers(&opened)));
        assert!(visits.follow(code(&link)).is_none(), "it is used up");
        let late = visits.link().unwrap();
        tokio::time::advance(LINK_WITHIN).await;
        assert!(visits.follow(code(&late)).is_none());
        let many: Vec<_> = (0..=LINKS_MAX).map(|_| visits.link().unwrap()).collect();
        assert!(visits.follow(code(&many[0])).is_none() && visits.follow(code(&many[1])).is_some());
        assert!(Visits::at(None).link().is_none(), "there is no page");
    }

    #[tokio::test(start_paused = true)]
    async fn a_visit_needs_both_halves_and_ends() {
        let visits = visits();
        let opened = visits.open().unwrap();
        for missing in [COOKIE.as_str(), PROOF] {
            let mut half = headers(&opened);
            half.remove(missing);
            assert!(!visits.admits(&half), "without {missing}");
        }
        let other = visits.open().unwrap();
        let mixed = Opened { cookie: opened.cookie.clone(), proof: other.proof };
        assert!(!visits.admits(&headers(&mixed)));
        for _ in 0..11 {
            tokio::time::advance(IDLE_MAX - Duration::from_secs(1)).await;
            assert!(visits.admits(&headers(&opened)), "it is used");
        }
        tokio::time::advance(IDLE_MAX).await;
        assert!(!visits.admits(&headers(&opened)), "it was idle, and it is old");
        let left = visits.open().unwrap();
        visits.leave(&headers(&left));
        assert!(!visits.admits(&headers(&left)));
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_visits_has_a_bound() {
        let visits = visits();
        let first = visits.open().unwrap();
        tokio::time::advance(Duration::from_secs(1)).await;
        let all: Vec<_> = (0..VISITS_MAX).map(|_| visits.open().unwrap()).collect();
        assert!(!visits.admits(&headers(&first)));
        assert!(all.iter().all(|one| visits.admits(&headers(one))));
    }

    #[test]
    fn an_origin_is_ones_own_or_not() {
        let of = |origin: &str, host: &str| {
            let pairs = [(ORIGIN, origin), (HOST, host)].map(|(name, value)| (name, value.parse().unwrap()));
            is_of_own_origin(&HeaderMap::from_iter(pairs))
        };
        assert!(of("http://127.0.0.1:9808", "127.0.0.1:9808") && of("https://a.example", "A.example"));
        assert!(!of("http://127.0.0.1:3000", "127.0.0.1:9808") && !of("null", "127.0.0.1:9808"));
        assert!(!is_of_own_origin(&HeaderMap::new()));
    }
}
