//! What is looked up when the metrics are read, so that a call costs nothing for it.

use super::resources;
use ::metrics::{Unit, counter, describe_counter, describe_gauge, gauge};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

const UPTIME: &str = "trunkline_upstream_uptime_seconds";
const REVISION: &str = "trunkline_upstream_revision";
const CAUSE: &str = "trunkline_upstream_cause_info";
const BREAKER: &str = "trunkline_breaker_state";
const PENDING: &str = "trunkline_pending_requests";
const TASKS: &str = "trunkline_tasks";
const MEMORY: &str = "trunkline_memory_bytes";
const MEMORY_LIMIT: &str = "trunkline_memory_limit_bytes";
const MEMORY_LOST: &str = "trunkline_memory_lost_total";
const CONNECTIONS: &str = "trunkline_upstream_connections";
const TOKEN_ENDS: &str = "trunkline_oauth_token_expiry_seconds";

/// Gauges that hold only while there is something to be seen. They are forgotten before each reading and set anew, so that none of an
/// upstream, a cause or a breaker that is gone stays.
pub fn sampled() -> impl Iterator<Item = &'static str> {
    [UPTIME, REVISION, CAUSE, BREAKER, PENDING, CONNECTIONS, TOKEN_ENDS].into_iter().chain(resources::SAMPLED)
}

/// Says what each of these metrics means.
pub(super) fn describe() {
    describe_gauge!(UPTIME, Unit::Seconds, "Seconds since the upstream became available; 0 while it is not");
    describe_gauge!(REVISION, "1 for the protocol revision that the upstream spoke last");
    describe_gauge!(CAUSE, "1, with the code of the cause for which the upstream is not ready");
    describe_gauge!(BREAKER, "The circuit breaker of an upstream over HTTP or a child: 0 closed, 1 half-open, 2 open");
    describe_gauge!(PENDING, "Requests in flight on the pipes to an upstream, without cancelled ones");
    describe_gauge!(CONNECTIONS, "Connections to an HTTP upstream, by state");
    describe_gauge!(
        TOKEN_ENDS,
        Unit::Seconds,
        "Seconds until the access token of an upstream expires; nothing where it does not"
    );
    describe_gauge!(TASKS, "Running tasks of the gateway");
    describe_gauge!(MEMORY, Unit::Bytes, "Memory held for peers, in steps of 16 KiB, by kind");
    describe_gauge!(MEMORY_LIMIT, Unit::Bytes, "Limit of the memory held for peers (`server.memory_limit`)");
    describe_counter!(MEMORY_LOST, "Large messages dropped because the memory limit was reached, by kind");
}

/// What is known of an upstream when it is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// Its configured name.
    pub upstream: &'a str,
    /// How long it has been up, in seconds.
    pub uptime: f64,
    /// The code of the cause for which it is not ready.
    pub cause: Option<&'static str>,
    /// The revision that it spoke last.
    pub revision: Option<&'a str>,
}

/// Shows what is known of an upstream; its revision among all.
pub fn shown(known: Known<'_>, all: impl Iterator<Item = &'static str>) {
    let label = || known.upstream.to_owned();
    gauge!(UPTIME, "upstream" => label()).set(known.uptime);
    if let Some(code) = known.cause {
        gauge!(CAUSE, "upstream" => label(), "code" => code).set(1.0);
    }
    // Of one that never spoke nothing is shown.
    for other in all.filter(|_| known.revision.is_some()) {
        let is_it = known.revision == Some(other);
        gauge!(REVISION, "upstream" => label(), "revision" => other).set(f64::from(u8::from(is_it)));
    }
}

/// Asked for a number; `None` once what it is about is gone.
type Asked = Box<dyn Fn() -> Option<usize> + Send>;

/// Numbers of parts of upstreams, by upstream: what is asked when the metrics are read.
struct Parts(Mutex<Vec<(String, Asked)>>);

/// The pipes that there are.
static PIPES: Parts = Parts(Mutex::new(Vec::new()));
/// The connections to upstreams that are in use, and those that wait for their next use.
static IN_USE: Parts = Parts(Mutex::new(Vec::new()));
static IDLE: Parts = Parts(Mutex::new(Vec::new()));
/// The tokens that there are.
static TOKENS: Parts = Parts(Mutex::new(Vec::new()));
/// The breakers that there are.
static BREAKERS: Parts = Parts(Mutex::new(Vec::new()));

impl Parts {
    fn add(&self, upstream: &str, asked: Asked) {
        let mut parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        parts.retain(|(_, asked)| asked().is_some());
        parts.push((upstream.to_owned(), asked));
    }

    /// The numbers of each upstream, put together.
    fn by_upstream(&self, together: fn(usize, usize) -> usize) -> BTreeMap<String, usize> {
        let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|(upstream, asked)| {
            let Some(number) = asked() else { return false };
            let known = numbers.entry(upstream.clone()).or_default();
            *known = together(*known, number);
            true
        });
        numbers
    }
}

/// Counts what waits on a pipe: when the metrics are read, so that a request costs nothing for it.
pub fn pending(upstream: &str, waiting: impl Fn() -> Option<usize> + Send + 'static) {
    PIPES.add(upstream, Box::new(waiting));
}

/// Counts connections to an upstream: those in use, and those that wait for their next use.
pub fn connections(
    upstream: &str,
    in_use: impl Fn() -> Option<usize> + Send + 'static,
    idle: impl Fn() -> Option<usize> + Send + 'static,
) {
    IN_USE.add(upstream, Box::new(in_use));
    IDLE.add(upstream, Box::new(idle));
}

/// Shows how many seconds a token can still be shown; `usize::MAX` where it does not end.
pub fn token(upstream: &str, ends_in: impl Fn() -> Option<usize> + Send + 'static) {
    TOKENS.add(upstream, Box::new(ends_in));
}

/// Shows how a breaker stands: 0 closed, 1 half-open, 2 open.
pub fn breaker(upstream: &str, state: impl Fn() -> Option<usize> + Send + 'static) {
    BREAKERS.add(upstream, Box::new(state));
}

/// Shows how much of a kind is kept, and how often something of it was dropped for want of memory.
pub fn memory(kind: &'static str, bytes: usize, lost: u64) {
    gauge!(MEMORY, "kind" => kind).set(bytes as f64);
    counter!(MEMORY_LOST, "kind" => kind).absolute(lost);
}

/// Shows how much may be kept together.
pub fn memory_limit(bytes: usize) {
    gauge!(MEMORY_LIMIT).set(bytes as f64);
}

/// Brings up to date what is counted only when it is read.
pub fn refresh(tasks: usize) {
    gauge!(TASKS).set(tasks as f64);
    for (upstream, count) in PIPES.by_upstream(|known, more| known + more) {
        gauge!(PENDING, "upstream" => upstream).set(count as f64);
    }
    for (parts, state) in [(&IN_USE, "in_use"), (&IDLE, "idle")] {
        for (upstream, count) in parts.by_upstream(|known, more| known + more) {
            gauge!(CONNECTIONS, "upstream" => upstream, "state" => state).set(count as f64);
        }
    }
    let ends = |known: usize, more: usize| if known == 0 { more } else { known.min(more) };
    for (upstream, left) in TOKENS.by_upstream(ends).into_iter().filter(|(_, left)| *left < usize::MAX) {
        gauge!(TOKEN_ENDS, "upstream" => upstream).set(left as f64);
    }
    for (upstream, state) in BREAKERS.by_upstream(usize::max) {
        gauge!(BREAKER, "upstream" => upstream).set(state as f64);
    }
}
