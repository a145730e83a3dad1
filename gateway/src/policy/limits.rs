//! How much one client may have: calls in a time, calls at once, bytes. Who has more is told when to come again, and nobody else waits.

use super::config;
use crate::call::refusal::{Reason, Refusal};
use crate::call::reply::{Ending, Guard, Reply};
use crate::call::share::{Abandoned, Rate, RateCell, Share};
use crate::call::{Call, Handle};
use crate::metrics::refused;
use dashmap::DashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// So many clients are remembered before those that have rested are forgotten.
const CLIENTS_MAX: usize = 1024;
/// Nobody knows when a call ends for which somebody waits: who has too many of them is told to come again so soon.
const SOON: Duration = Duration::from_secs(1);
/// So many calls that were abandoned are remembered at least before those that are over are forgotten.
const ABANDONED_MIN: usize = 64;

/// A layer that holds calls against what is configured; where nothing is, it is not there.
#[derive(Clone)]
pub struct Limits(Option<Arc<Book>>);

/// What is configured, and how far each client has come.
struct Book {
    terms: config::Limits,
    clients: DashMap<Share, Arc<Client>>,
    look_at: AtomicUsize,
}

/// One client: a principal, or without credentials an address.
struct Client {
    calls: Option<RateCell>,
    bytes: Option<RateCell>,
    open: AtomicUsize,
    /// Those of them for whose answers nobody waits, the oldest first; some may be over.
    abandoned: Mutex<Vec<Weak<Abandoned>>>,
}

impl Limits {
    /// The limits of a configuration.
    pub fn new(terms: &config::Limits) -> Self {
        let is_any = *terms != config::Limits::default();
        let (clients, look_at) = (DashMap::new(), AtomicUsize::new(CLIENTS_MAX));
        Self(is_any.then(|| Arc::new(Book { terms: terms.clone(), clients, look_at })))
    }
}

impl<H: Handle> tower::Layer<H> for Limits {
    type Service = Limited<H>;

    fn layer(&self, inner: H) -> Limited<H> {
        Limited { inner, book: self.0.clone() }
    }
}

/// See [`Limits`].
pub struct Limited<H> {
    inner: H,
    book: Option<Arc<Book>>,
}

impl<H: Handle> Handle for Limited<H> {
    fn handle(&self, call: Call) -> Reply {
        let Some(book) = self.book.as_ref().filter(|_| call.method.is_long() && !call.is_notification) else {
            return self.inner.handle(call);
        };
        match book.admit(&call) {
            Ok(open) => self.inner.handle(call).attach(Box::new(open)),
            Err(refusal) => Reply::refuse(call.revision(), refusal),
        }
    }
}

impl Book {
    fn admit(&self, call: &Call) -> Result<Open, Refusal> {
        let open = self.open(&call.caller.share());
        let client = &open.0;
        if let Some(most) = self.terms.max_concurrency.filter(|most| client.has_more_than(*most))
            && let Err(wait) = client.make_room()
        {
            return Err(refusal("concurrency", wait, &format!("{most} calls at once (`[limits] max_concurrency`)")));
        }
        if let Some(bytes) = &client.bytes
            && let Err(wait) = bytes.has_any()
        {
            let Rate { count, .. } = bytes.rate();
            return Err(refusal("bytes", wait, &format!("{count} bytes {} (`[limits] bytes`)", bytes.rate().every())));
        }
        if let Some(calls) = &client.calls
            && let Err(wait) = calls.take()
        {
            let Rate { count, .. } = calls.rate();
            return Err(refusal("rate", wait, &format!("{count} calls {} (`[limits] calls`)", calls.rate().every())));
        }
        client.owe(call.params.raw().len());
        Ok(open)
    }

    /// A call of a client, which is counted before it can be forgotten.
    fn open(&self, share: &Share) -> Open {
        if let Some(client) = self.clients.get(share) {
            return Open::of(client.clone());
        }
        if self.clients.len() >= self.look_at.load(Ordering::Relaxed) {
            self.clients.retain(|_, client| !client.has_rested());
            self.look_at.store(self.clients.len() * 2 + CLIENTS_MAX, Ordering::Relaxed);
        }
        let config::Limits { calls, bytes, .. } = self.terms;
        let cell = |rate: Option<_>| rate.map(RateCell::new);
        let (open, abandoned) = (AtomicUsize::new(0), Mutex::default());
        let fresh = || Arc::new(Client { calls: cell(calls), bytes: cell(bytes), open, abandoned });
        let client = self.clients.entry(share.clone()).or_insert_with(fresh);
        Open::of(client.clone())
    }
}

impl Client {
    fn has_more_than(&self, most: usize) -> bool {
        self.open.load(Ordering::Relaxed) > most
    }

    /// Gives the place of the call that was abandoned first to another one; else when one can be had.
    fn make_room(&self) -> Result<(), Duration> {
        let mut abandoned = self.abandoned.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kept = None;
        abandoned.retain(|call| call.upgrade().is_some_and(|call| call.kept().is_some()));
        for call in abandoned.iter().filter_map(Weak::upgrade) {
            match call.give() {
                0 => kept = kept.into_iter().chain(call.kept()).min(),
                places => {
                    self.open.fetch_sub(places, Ordering::Relaxed);
                    return Ok(());
                }
            }
        }
        Err(kept.unwrap_or(SOON))
    }

    /// Nobody waits for one of its calls. Those that are over are forgotten while nobody needs room, too.
    fn abandon(&self, call: &Arc<Abandoned>) {
        call.hold();
        let mut abandoned = self.abandoned.lock().unwrap_or_else(PoisonError::into_inner);
        if abandoned.len() > self.open.load(Ordering::Relaxed) * 2 + ABANDONED_MIN {
            abandoned.retain(|call| call.strong_count() > 0);
        }
        abandoned.push(Arc::downgrade(call));
    }

    fn owe(&self, bytes: usize) {
        if let Some(cell) = &self.bytes {
            cell.owe(bytes as u64);
        }
    }

    /// Whether it has no call, and nothing that it had counts any more.
    fn has_rested(&self) -> bool {
        let mut cells = self.calls.iter().chain(&self.bytes);
        self.open.load(Ordering::Relaxed) == 0 && cells.all(RateCell::has_rested)
    }
}

/// A call of a client that is under way, and what it is while nobody waits for it.
struct Open(Arc<Client>, Option<Arc<Abandoned>>);

impl Open {
    fn of(client: Arc<Client>) -> Self {
        client.open.fetch_add(1, Ordering::Relaxed);
        Self(client, None)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if self.1.take().is_none_or(|left| left.release()) {
            self.0.open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Guard for Open {
    fn done(&mut self, ending: &Ending<'_>) {
        self.0.owe(ending.outcome.bytes());
    }

    fn abandoned(&mut self, call: &Arc<Abandoned>) {
        self.0.abandon(call);
        self.1 = Some(call.clone());
    }
}

fn refusal(full: &'static str, wait: Duration, most: &str) -> Refusal {
    refused(full).increment(1);
    let seconds = wait.as_secs_f32().ceil().max(1.0);
    Refusal::new(Reason::Limited(wait), format!("this client may have {most}; try again in {seconds} s"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::caller::{Caller, Can, Grants, Principal};
    use crate::call::reply::{Failure, Outcome};
    use crate::protocol::frame::Method;
    use crate::protocol::revision::Revision;
    use crate::protocol::value::Object;
    use bytes::Bytes;
    use tower::Layer;

    /// Answers a prompt never, and all else at once with a hundred bytes.
    struct Inner;

    impl Handle for Inner {
        fn handle(&self, call: Call) -> Reply {
            let text = format!("{{\"x\":\"{}\"}}", "y".repeat(92));
            match call.method {
                Method::PromptsGet => Reply::deferred(std::future::pending()),
                _ => Reply::complete(Revision::V2025_11_25, Object::parse(text.into()).unwrap()),
            }
        }
    }

    fn call(principal: &str, method: Method) -> Call {
        let caller = Caller {
            principal: Principal::named(principal),
            address: None,
            grants: Grants::all(),
            revision: Revision::V2025_11_25,
            capabilities: Bytes::from_static(b"{}"),
            tenant: None,
            can: Can::default(),
        };
        Call::about(method, Object::empty(), Arc::new(caller))
    }

    fn limited(terms: config::Limits) -> impl AsyncFn(&str) -> Option<Duration> {
        let limited = Limits::new(&terms).layer(Inner);
        async move |principal: &str| match limited.handle(call(principal, Method::ToolsCall)).outcome().await.1 {
            Outcome::Error(Failure::Refused(Refusal { reason: Reason::Limited(wait), .. })) => Some(wait),
            Outcome::Complete(_) => None,
            other => panic!("{other:?}"),
        }
    }

    fn rate(count: u64) -> Option<Rate> {
        Some(Rate { count, per: Duration::from_secs(60) })
    }

    #[tokio::test(start_paused = true)]
    async fn one_who_calls_too_often_is_told_when_to_come_again_and_nobody_else_is() {
        let asked = limited(config::Limits { calls: rate(3), ..config::Limits::default() });
        for _ in 0..3 {
            assert_eq!(asked("a").await, None);
        }
        assert_eq!(asked("a").await, Some(Duration::from_secs(20)));
        assert_eq!(asked("b").await, None);
        tokio::time::advance(Duration::from_secs(20)).await;
        assert_eq!((asked("a").await, asked("a").await), (None, Some(Duration::from_secs(20))));
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_of_results_are_owed_and_waited_for() {
        let asked = limited(config::Limits { bytes: rate(150), ..config::Limits::default() });
        assert_eq!((asked("a").await, asked("a").await), (None, None), "one may be larger than what is left");
        assert!(asked("a").await.is_some() && asked("b").await.is_none());
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(asked("a").await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn calls_at_once_are_counted_until_they_end_or_are_dropped() {
        let terms = config::Limits { max_concurrency: Some(2), ..config::Limits::default() };
        let limited = Limits::new(&terms).layer(Inner);
        let waits = |principal: &str| limited.handle(call(principal, Method::PromptsGet));
        let held = [waits("a"), waits("a")];
        let third = async || limited.handle(call("a", Method::ToolsCall)).outcome().await.1;
        let is_refused = |outcome: Outcome| matches!(outcome, Outcome::Error(_));
        assert!(is_refused(third().await));
        assert!(!is_refused(limited.handle(call("b", Method::ToolsCall)).outcome().await.1));
        assert!(!is_refused(limited.handle(call("a", Method::ToolsList)).outcome().await.1), "a list is no call");
        drop(held);
        assert!(!is_refused(third().await));
    }

    #[tokio::test(start_paused = true)]
    async fn clients_that_have_rested_are_forgotten_and_no_limit_is_no_book() {
        assert!(Limits::new(&config::Limits::default()).0.is_none());
        let limits = Limits::new(&config::Limits { calls: rate(1), ..config::Limits::default() });
        let book = limits.0.as_ref().unwrap();
        for number in 0..CLIENTS_MAX * 3 {
            tokio::time::advance(Duration::from_secs(61)).await;
            assert!(book.admit(&call(&number.to_string(), Method::ToolsCall)).is_ok());
        }
        assert!(book.clients.len() <= CLIENTS_MAX, "{}", book.clients.len());
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_for_which_nobody_waits_gives_its_place_to_another_after_a_while() {
        let terms = config::Limits { max_concurrency: Some(2), ..config::Limits::default() };
        let limits = Limits::new(&terms);
        let limited = limits.clone().layer(Inner);
        let waits = || limited.handle(call("a", Method::PromptsGet));
        let wait = async || match limited.handle(call("a", Method::ToolsCall)).outcome().await.1 {
            Outcome::Error(Failure::Refused(Refusal { reason: Reason::Limited(wait), .. })) => Some(wait),
            _ => None,
        };
        let (mut first, mut second) = (waits(), waits());
        assert_eq!(wait().await, Some(SOON), "somebody waits for both");
        let (left, other) = (Abandoned::new(true), Abandoned::new(true));
        first.abandon(&left);
        assert_eq!(wait().await, Some(Duration::from_secs(10)), "its client may come back");
        tokio::time::advance(Duration::from_secs(4)).await;
        second.abandon(&other);
        assert_eq!(wait().await, Some(Duration::from_secs(6)));
        assert!(other.back());
        tokio::time::advance(Duration::from_secs(6)).await;
        let third = waits();
        left.given().await;
        assert_eq!(wait().await, Some(SOON), "its place was given once");
        drop(first);
        assert_eq!(wait().await, Some(SOON), "it has none any more");
        drop(third);
        assert_eq!(wait().await, None);
        // What nobody can come back for gives its place at once.
        let mut fourth = waits();
        let left = Abandoned::new(false);
        fourth.abandon(&left);
        assert_eq!(wait().await, None);
        left.given().await;
        drop((second, fourth));
        let book = limits.0.as_ref().unwrap();
        assert!(book.clients.iter().all(|client| client.open.load(Ordering::Relaxed) == 0));
    }

    #[test]
    fn a_client_is_not_forgotten_between_its_look_up_and_its_count() {
        let limits = Limits::new(&config::Limits { max_concurrency: Some(2), ..config::Limits::default() });
        let book = limits.0.as_ref().unwrap();
        let is_over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    book.clients.retain(|_, client| !client.has_rested());
                }
            });
            let share = call("a", Method::ToolsCall).caller.share();
            let lost = (0..100_000).filter(|_| {
                // Kept from one round to the next until it is looked up.
                let before = book.open(&share);
                drop(before);
                let _open = book.open(&share);
                book.clients.get(&share).is_none()
            });
            let lost = lost.count();
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(lost, 0);
        });
    }
}
