//! What is counted of the way to an upstream: each attempt of a call, why one is repeated, breakers, tokens, notifications.

use super::labels::OUTCOMES;
use ::metrics::{Counter, Histogram, Unit, counter, describe_counter, describe_histogram, histogram};
use std::sync::OnceLock;

const REQUESTS: &str = "trunkline_upstream_requests_total";
const DURATION: &str = "trunkline_upstream_request_duration_seconds";
const RETRIES: &str = "trunkline_upstream_retries_total";
const WITHHELD: &str = "trunkline_upstream_retries_withheld_total";
const TRANSITIONS: &str = "trunkline_breaker_transitions_total";
const NOTIFICATIONS: &str = "trunkline_notifications_total";
const TOKENS: &str = "trunkline_oauth_refresh_total";

/// No method has a place beyond this.
const METHODS_MAX: usize = 64;
/// Why a call is sent a second time: nothing of it ran the first time.
pub const RETRY_REASONS: [&str; 4] = ["header_mismatch", "revision", "session_lost", "unsent"];
/// Where a breaker can go.
const BREAKER_STATES: [&str; 3] = ["closed", "half_open", "open"];
/// What becomes of asking for a token.
const TOKEN_RESULTS: [&str; 2] = ["ok", "failed"];

/// Says what each of these metrics means.
pub(super) fn describe() {
    describe_counter!(REQUESTS, "Requests to an upstream on behalf of calls, one per attempt");
    describe_histogram!(DURATION, Unit::Seconds, "Duration of a request to an upstream, from sent to its end");
    describe_counter!(RETRIES, "Calls sent to an upstream a second time, by reason");
    describe_counter!(WITHHELD, "Calls not sent a second time, since too many others were");
    describe_counter!(
        TRANSITIONS,
        "Changes of the circuit breaker of an upstream over HTTP or a child, by what it changes to"
    );
    describe_counter!(NOTIFICATIONS, "Notifications of an upstream that belong to no call, by method");
    describe_counter!(TOKENS, "Access tokens fetched for an upstream, by result");
}

/// The counters of an upstream that are there from its first sight on.
pub(super) fn first_seen(upstream: &str) {
    RETRY_REASONS.iter().for_each(|reason| retries(upstream, reason).increment(0));
    withheld(upstream).increment(0);
}

fn withheld(upstream: &str) -> Counter {
    counter!(WITHHELD, "upstream" => upstream.to_owned())
}

fn retries(upstream: &str, reason: &'static str) -> Counter {
    counter!(RETRIES, "upstream" => upstream.to_owned(), "reason" => reason)
}

/// The attempts of calls of one upstream, by the place of their method: handles are made with the first of each, and looked up by nothing.
pub struct Attempts {
    upstream: String,
    by_method: Box<[OnceLock<Box<OfMethod>>]>,
}

struct OfMethod {
    method: &'static str,
    duration: Histogram,
    /// By outcome: most never come.
    requests: [OnceLock<Counter>; OUTCOMES.len()],
}

impl Attempts {
    /// Of an upstream.
    pub(super) fn new(upstream: &str) -> Self {
        Self { upstream: upstream.to_owned(), by_method: (0..METHODS_MAX).map(|_| OnceLock::new()).collect() }
    }

    /// An attempt of this method has ended with the outcome of this place in [`OUTCOMES`], so many seconds after it was sent.
    pub fn ended(&self, (place, method): (usize, &'static str), outcome: usize, seconds: f64) {
        let Some(of) = self.by_method.get(place) else { return };
        let of = of.get_or_init(|| {
            let duration = histogram!(DURATION, "upstream" => self.upstream.clone(), "method" => method);
            Box::new(OfMethod { method, duration, requests: Default::default() })
        });
        of.duration.record(seconds);
        let requests = of.requests[outcome].get_or_init(|| {
            let (upstream, outcome) = (self.upstream.clone(), OUTCOMES[outcome]);
            counter!(REQUESTS, "upstream" => upstream, "method" => of.method, "outcome" => outcome)
        });
        requests.increment(1);
    }

    /// A call is sent a second time, for one of [`RETRY_REASONS`].
    pub fn repeated(&self, reason: &'static str) {
        retries(&self.upstream, reason).increment(1);
    }

    /// A call is not sent a second time, though nothing of it ran.
    pub fn withheld(&self) {
        withheld(&self.upstream).increment(1);
    }

    /// The upstream has told something that belongs to no call.
    pub fn notified(&self, method: &'static str) {
        counter!(NOTIFICATIONS, "upstream" => self.upstream.clone(), "method" => method).increment(1);
    }
}

/// The changes of one breaker. The default counts nothing.
#[derive(Debug)]
pub struct Transitions([Counter; 3]);

impl Default for Transitions {
    fn default() -> Self {
        Self([const { Counter::noop() }; 3])
    }
}

impl Transitions {
    /// Those of an upstream's breaker.
    pub fn of(upstream: &str) -> Self {
        let count = |to| {
            let counter = counter!(TRANSITIONS, "upstream" => upstream.to_owned(), "to" => to);
            counter.increment(0);
            counter
        };
        Self(BREAKER_STATES.map(count))
    }

    /// Nothing holds back requests any longer.
    pub fn closed(&self) {
        self.0[0].increment(1);
    }

    /// One request tries.
    pub fn half_open(&self) {
        self.0[1].increment(1);
    }

    /// Requests are held back.
    pub fn open(&self) {
        self.0[2].increment(1);
    }
}

/// Fetches of the tokens of one upstream: those that gave one, and those that failed.
#[derive(Debug)]
pub struct TokenFetches([Counter; 2]);

impl TokenFetches {
    /// Those for an upstream.
    pub fn of(upstream: &str) -> Self {
        let count = |result| {
            let counter = counter!(TOKENS, "upstream" => upstream.to_owned(), "result" => result);
            counter.increment(0);
            counter
        };
        Self(TOKEN_RESULTS.map(count))
    }

    /// One has ended.
    pub fn ended(&self, is_ok: bool) {
        self.0[usize::from(!is_ok)].increment(1);
    }
}
