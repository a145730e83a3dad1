//! How much one client may have: calls in a time, calls at once, bytes. Who has more is told when to come again, and nobody else waits.

use super::config;
use crate::call::refusal::{Reason, Refusal};
use crate::call::reply::{Ending, Guard, Reply};
use crate::call::share::{Abandoned, Rate, RateCell, Share};
use crate::call::{Call, Handle};
use crate::metrics::refused;
use arc_swap::ArcSwap;
use dashmap::DashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// So many clients are remembered before those that have rested are forgotten.
const CLIENTS_MAX: usize = 1024;
/// Nobody knows when a call ends for which somebody waits: who has too many of them is told to come again so soon.
const SOON: Duration = Duration::from_secs(1);
/// So many calls that were abandoned are remembered at least before those that are over are forgotten.
const ABANDONED_MIN: usize = 64;

/// A layer that holds calls against what is configured; where nothing is, calls pass it by. Clones are the same.
#[derive(Clone)]
pub struct Limits(Arc<Book>);

/// What is configured, and how far each client has come.
struct Book {
    /// Whether anything is configured.
    is_any: AtomicBool,
    terms: ArcSwap<config::Limits>,
    clients: DashMap<Share, Arc<Client>>,
    look_at: AtomicUsize,
}

/// One client: a principal, or without credentials an address.
struct Client {
    rates: ArcSwap<Rates>,
    open: AtomicUsize,
    /// Those of them for whose answers nobody waits, the oldest first; some may be over.
    abandoned: Mutex<Vec<Weak<Abandoned>>>,
}

/// How far a client has come with each rate that there is.
struct Rates {
    calls: Option<Arc<RateCell>>,
    bytes: Option<Arc<RateCell>>,
}

impl Rates {
    fn new(terms: &config::Limits) -> Self {
        let cell = |rate: Option<Rate>| rate.map(|rate| Arc::new(RateCell::new(rate)));
        Self { calls: cell(terms.calls), bytes: cell(terms.bytes) }
    }

    /// The same by other terms: of a rate that stays, what was taken counts on; another one begins anew.
    fn by(&self, terms: &config::Limits) -> Self {
        let cell = |old: &Option<Arc<RateCell>>, rate: Option<Rate>| {
            let kept = old.as_ref().filter(|old| Some(old.rate()) == rate).cloned();
            kept.or_else(|| rate.map(|rate| Arc::new(RateCell::new(rate))))
        };
        Self { calls: cell(&self.calls, terms.calls), bytes: cell(&self.bytes, terms.bytes) }
    }
}

impl Limits {
    /// The limits of a configuration.
    pub fn new(terms: &config::Limits) -> Self {
        let (clients, look_at) = (DashMap::new(), AtomicUsize::new(CLIENTS_MAX));
        let is_any = (*terms != config::Limits::default()).into();
        Self(Arc::new(Book { is_any, terms: ArcSwap::from_pointee(terms.clone()), clients, look_at }))
    }

    /// These are the limits from the next call on. Calls under way count, where they began under a limit.
    pub fn set(&self, terms: &config::Limits) {
        let book = &self.0;
        if **book.terms.load() == *terms {
            return;
        }
        book.terms.store(Arc::new(terms.clone()));
        // A client that comes meanwhile reads the new terms under the lock of its shard, or is found here.
        book.clients.iter().for_each(|client| client.rates.store(Arc::new(client.rates.load().by(terms))));
        book.clients.retain(|_, client| !client.has_rested());
        book.is_any.store(*terms != config::Limits::default(), Ordering::Relaxed);
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
    book: Arc<Book>,
}

impl<H: Handle> Handle for Limited<H> {
    fn handle(&self, call: Call) -> Reply {
        let is_any = self.book.is_any.load(Ordering::Relaxed);
        if !is_any || !call.method.is_long() || call.is_notification {
            return self.inner.handle(call);
        }
        match self.book.admit(&call) {
            Ok(open) => self.inner.handle(call).attach(Box::new(open)),
            Err(refusal) => Reply::refuse(call.revision(), refusal),
        }
    }
}

impl Book {
    fn admit(&self, call: &Call) -> Result<Open, Refusal> {
        let open = self.open(&call.caller.share());
        let client = &open.0;
        if let Some(most) = self.terms.load().max_concurrency.filter(|most| client.has_more_than(*most))
            && let Err(wait) = client.make_room()
        {
            return Err(refusal("concurrency", wait, &format!("{most} calls at once (`[limits] max_concurrency`)")));
        }
        let rates = client.rates.load();
        if let Some(bytes) = &rates.bytes
            && let Err(wait) = bytes.has_any()
        {
            let Rate { count, .. } = bytes.rate();
            return Err(refusal("bytes", wait, &format!("{count} bytes {} (`[limits] bytes`)", bytes.rate().every())));
        }
        if let Some(calls) = &rates.calls
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
        let (open, abandoned) = (AtomicUsize::new(0), Mutex::default());
        let fresh = || {
            let rates = ArcSwap::from_pointee(Rates::new(&self.terms.load()));
            Arc::new(Client { rates, open, abandoned })
        };
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
        if let Some(cell) = &self.rates.load().bytes {
            cell.owe(bytes as u64);
        }
    }

    /// Whether it has no call, and nothing that it had counts any more.
    fn has_rested(&self) -> bool {
        let rates = self.rates.load();
        let mut cells = rates.calls.iter().chain(&rates.bytes);
        self.open.load(Ordering::Relaxed) == 0 && cells.all(|cell| cell.has_rested())
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
mod tests;
