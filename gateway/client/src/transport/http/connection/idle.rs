//! The idle connections to an HTTP upstream, and the limit of their idle time.

use http::{HeaderName, Response, Version, header};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How many wait for their next use.
const IDLE_MAX: usize = 64;
/// The longest idle time without TLS: uvicorn, Node and gunicorn close a connection that was idle for 2 to 5 s.
pub(super) const IDLE_MAX_PLAIN: Duration = Duration::from_secs(4);
/// The longest idle time within TLS, where a new connection costs more; proxies close theirs after a minute or more.
pub(super) const IDLE_MAX_TLS: Duration = Duration::from_secs(45);
/// How old one gets: a name that leads elsewhere by now is followed, since every new connection looks it up.
pub(super) const AGE_MAX: Duration = Duration::from_secs(300);

/// The margin before the announced end (`Keep-Alive: timeout=N`).
const ANNOUNCED_MARGIN: Duration = Duration::from_secs(1);
/// The margin before the learned end is a tenth of it, and at least this: the way of a request there, and the accuracy of timers.
const LEARNED_MARGIN: Duration = Duration::from_millis(100);
/// The number of closes from which the limit is learned, and their age: an upstream that restarts closes connections early.
const CLOSES_MAX: usize = 8;
const CLOSE_AGE_MAX: Duration = Duration::from_secs(300);

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");

/// Limits the idle time of connections to one upstream. The limit is learned from connections that the upstream has closed.
#[derive(Debug)]
pub(super) struct IdleLimit {
    most: Duration,
    closes: Mutex<VecDeque<Close>>,
}

/// A connection that the upstream has closed.
#[derive(Debug)]
struct Close {
    at: Instant,
    idle: Duration,
}

impl IdleLimit {
    pub(super) fn new(is_tls: bool) -> Self {
        Self { most: if is_tls { IDLE_MAX_TLS } else { IDLE_MAX_PLAIN }, closes: Mutex::default() }
    }

    /// Learns that the upstream closed a connection that was idle for this long.
    pub(super) fn learn(&self, idle: Duration) {
        let mut closes = self.closes();
        if closes.len() == CLOSES_MAX {
            closes.pop_front();
        }
        closes.push_back(Close { at: Instant::now(), idle });
    }

    /// The idle time from which a connection is not used again.
    pub(super) fn limit(&self, now: Instant) -> Duration {
        let closes = self.closes();
        let recent = closes.iter().filter(|close| now < close.at + CLOSE_AGE_MAX);
        let shortest = recent.map(|close| close.idle.saturating_sub(LEARNED_MARGIN.max(close.idle / 10))).min();
        shortest.unwrap_or(self.most).min(self.most)
    }

    fn closes(&self) -> MutexGuard<'_, VecDeque<Close>> {
        self.closes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The idle time that the upstream allows a connection after this response: zero if it closes the connection, `None` if it says nothing.
pub(super) fn announced_idle<B>(response: &Response<B>) -> Option<Duration> {
    let (mut closes, mut timeout) = (response.version() < Version::HTTP_11, None);
    // Few headers are walked faster than one is looked up.
    for (name, value) in response.headers() {
        if *name == header::CONNECTION {
            closes = has_token(value.as_bytes(), b"close") || closes && !has_token(value.as_bytes(), b"keep-alive");
        } else if *name == KEEP_ALIVE {
            timeout = value.to_str().ok().and_then(timeout_of);
        }
    }
    if closes { Some(Duration::ZERO) } else { timeout.map(|timeout| timeout.saturating_sub(ANNOUNCED_MARGIN)) }
}

/// Whether a list of tokens has this one.
fn has_token(list: &[u8], token: &[u8]) -> bool {
    list.split(|byte| *byte == b',').any(|part| part.trim_ascii().eq_ignore_ascii_case(token))
}

/// The `timeout` parameter of a `Keep-Alive` header.
fn timeout_of(header: &str) -> Option<Duration> {
    let mut parameters = header.split(',').filter_map(|parameter| parameter.split_once('='));
    let (_, timeout) = parameters.find(|(name, _)| name.trim().eq_ignore_ascii_case("timeout"))?;
    timeout.trim().trim_matches('"').parse().ok().map(Duration::from_secs)
}

/// Connections that wait; the one that was used last is used next.
#[derive(Debug)]
pub(crate) struct Idle<T>(Vec<Waiting<T>>);

#[derive(Debug)]
struct Waiting<T> {
    connection: T,
    born: Instant,
    since: Instant,
    /// The idle time that the upstream announced.
    announced: Duration,
}

impl<T> Default for Idle<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Idle<T> {
    /// Keeps a connection for its next use within the announced idle time, unless it is old or many wait already.
    pub(crate) fn put(&mut self, connection: T, born: Instant, announced: Option<Duration>) {
        let (since, announced) = (Instant::now(), announced.unwrap_or(Duration::MAX));
        if self.0.len() < IDLE_MAX && since < born + AGE_MAX && !announced.is_zero() {
            self.0.push(Waiting { connection, born, since, announced });
        }
    }

    /// How many there are; some may be closed or old by now.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// One that is likely to be open and not too old, and when it was made.
    pub(crate) fn take(&mut self, limit: &IdleLimit, is_closed: impl Fn(&T) -> bool) -> Option<(T, Instant)> {
        let now = Instant::now();
        let limit = limit.limit(now);
        while let Some(Waiting { connection, born, since, announced }) = self.0.pop() {
            let idle = now - since;
            if idle >= limit {
                // All that lie below it have waited longer.
                self.0.clear();
                return None;
            }
            if idle < announced && !is_closed(&connection) && now < born + AGE_MAX {
                return Some((connection, born));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn idle_connections_are_dropped_if_closed_old_or_too_many() {
        let (mut idle, limit) = (Idle::default(), IdleLimit::new(false));
        let take = |idle: &mut Idle<u32>| idle.take(&limit, |number| *number == 13).map(|(number, _)| number);
        let born = Instant::now();
        [1, 2, 13].into_iter().for_each(|number| idle.put(number, born, None));
        assert_eq!(take(&mut idle), Some(2));
        advance(IDLE_MAX_PLAIN).await;
        assert_eq!(take(&mut idle), None, "it was idle for too long");
        // In use without a pause, and given up all the same once it is old.
        let born = Instant::now();
        let mut uses = 0;
        idle.put(7, born, None);
        while let Some((number, of)) = idle.take(&limit, |_| false) {
            assert_eq!((number, of), (7, born));
            advance(3 * SECOND).await;
            idle.put(number, of, None);
            uses += 1;
        }
        assert_eq!(uses, 100);
        (0..1000).for_each(|number| idle.put(number, Instant::now(), None));
        assert_eq!(std::iter::from_fn(|| take(&mut idle)).count(), IDLE_MAX - 1, "the closed one is left out");
    }

    /// Whether a connection is used again that was idle for this long.
    async fn is_reused(limit: &IdleLimit, announced: Option<Duration>, time: Duration) -> bool {
        let mut idle = Idle::default();
        idle.put((), Instant::now(), announced);
        advance(time).await;
        idle.take(limit, |()| false).is_some()
    }

    #[tokio::test(start_paused = true)]
    async fn idle_limit_depends_on_tls_and_on_the_announced_time() {
        let (plain, tls) = (IdleLimit::new(false), IdleLimit::new(true));
        let announced = |text: &str| {
            let response = Response::builder().header("keep-alive", text).body(()).unwrap();
            announced_idle(&response)
        };
        for (limit, announced, longest) in [
            (&plain, None, 4),
            (&tls, None, 45),
            (&plain, announced("timeout=3"), 2),
            (&plain, announced("timeout=60, max=100"), 4),
            (&tls, announced("timeout=5"), 4),
            (&tls, announced("max=100, Timeout = \"5\""), 4),
            (&tls, announced("max=100"), 45),
        ] {
            let ends = longest * SECOND;
            assert!(is_reused(limit, announced, ends - SECOND / 100).await, "{announced:?}");
            assert!(!is_reused(limit, announced, ends).await, "{announced:?}");
        }
        assert!(!is_reused(&plain, announced("timeout=1"), Duration::ZERO).await, "nothing is left of it");
    }

    #[test]
    fn a_closing_response_leaves_no_idle_time() {
        let announced = |version, connection: &str| {
            let response = Response::builder().version(version).header("connection", connection).body(()).unwrap();
            announced_idle(&response)
        };
        assert_eq!(announced(Version::HTTP_11, "keep-alive"), None);
        assert_eq!(announced(Version::HTTP_11, "x, Close"), Some(Duration::ZERO));
        assert_eq!(announced(Version::HTTP_10, "Keep-Alive"), None);
        assert_eq!(announced(Version::HTTP_10, "x"), Some(Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn idle_limit_is_learned_from_recent_closes() {
        let limit = IdleLimit::new(true);
        let now = || limit.limit(Instant::now());
        limit.learn(5 * SECOND);
        assert_eq!(now(), Duration::from_millis(4500));
        limit.learn(SECOND / 2);
        assert_eq!(now(), Duration::from_millis(400));
        limit.learn(SECOND / 1000);
        assert_eq!(now(), Duration::ZERO, "nothing is left but the margin");
        advance(CLOSE_AGE_MAX).await;
        assert_eq!(now(), IDLE_MAX_TLS, "a restart of the upstream does not limit it for good");
        limit.learn(SECOND / 1000);
        (0..CLOSES_MAX).for_each(|_| limit.learn(10 * SECOND));
        assert_eq!(now(), 9 * SECOND, "later closes count alone");
        limit.learn(100 * SECOND);
        limit.learn(100 * SECOND);
        assert!(now() <= IDLE_MAX_TLS);
    }
}
