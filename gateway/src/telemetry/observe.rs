//! The outermost layer of the chain: counts and times every call.

use crate::call::refusal::Reason;
use crate::call::reply::{Ending, Failure, Guard, Outcome, Reply};
use crate::call::{Call, Handle};
use crate::metrics;
use crate::metrics::{OUTCOMES, Route};
use crate::protocol::frame::Method;
use crate::protocol::value::Key;
use ::metrics::Histogram;
use arc_swap::ArcSwap;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, LazyLock};
use tokio::time::Instant;

/// A layer that counts calls by method, owner and outcome, and times them.
#[derive(Clone, Default)]
pub struct Observe(Arc<Routes>);

impl<H: Handle> tower::Layer<H> for Observe {
    type Service = Observed<H>;

    fn layer(&self, inner: H) -> Observed<H> {
        Observed { inner, routes: self.0.clone() }
    }
}

/// A handler whose calls are counted.
pub struct Observed<H> {
    inner: H,
    routes: Arc<Routes>,
}

impl<H: Handle> Handle for Observed<H> {
    fn handle(&self, call: Call) -> Reply {
        let start = Instant::now();
        let (method, is_listen) = (call.method.label(), call.method == Method::Listen);
        let reply = self.inner.handle(call);
        let route = self.routes.of(method, reply.owner());
        reply.attach(Box::new(Watch { route: Some(route), start, is_listen }))
    }
}

/// One method's and owner's handles.
struct Handles {
    route: Route,
    overhead: Histogram,
}

/// All handles by owner and method: few, and made once; read without a lock.
#[derive(Default)]
struct Routes(ArcSwap<HashMap<Arc<str>, ByMethod, Plain>>);

type ByMethod = HashMap<&'static str, Arc<Handles>, Plain>;

/// Names are the configuration's and methods the protocol's: nobody chooses them to collide.
type Plain = BuildHasherDefault<Fnv>;

/// FNV-1a: short texts in few steps.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

static GATEWAY: LazyLock<Arc<str>> = LazyLock::new(|| metrics::GATEWAY.into());

impl Routes {
    fn of(&self, method: &'static str, owner: Option<&Arc<str>>) -> Arc<Handles> {
        let owner = owner.unwrap_or(&GATEWAY);
        if let Some(handles) = self.0.load().get(owner).and_then(|methods| methods.get(method)) {
            return handles.clone();
        }
        let handles = Arc::new(Handles { route: metrics::route(method, owner), overhead: metrics::overhead(method) });
        self.0.rcu(|known| {
            let mut known = HashMap::clone(known);
            known.entry(owner.clone()).or_default().insert(method, handles.clone());
            known
        });
        handles
    }
}

/// Watches one reply.
struct Watch {
    /// `None` once the outcome was seen.
    route: Option<Arc<Handles>>,
    start: Instant,
    is_listen: bool,
}

impl Guard for Watch {
    fn done(&mut self, ending: &Ending<'_>) {
        let Some(handles) = self.route.take() else { return };
        handles.route.requests[outcome_of(ending.outcome)].increment(1);
        // A listen call lasts as long as its client likes: that is no duration of ours.
        if !self.is_listen {
            let duration = self.start.elapsed();
            handles.route.duration.record(duration.as_secs_f64());
            handles.overhead.record(duration.saturating_sub(ending.upstream_time).as_secs_f64());
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(handles) = self.route.take() {
            // Nobody listens for ever: the end of a listen call is no cancellation.
            let outcome = if self.is_listen { OK } else { CANCELLED };
            handles.route.requests[outcome].increment(1);
            if !self.is_listen {
                handles.route.duration.record(self.start.elapsed().as_secs_f64());
            }
        }
    }
}

const OK: usize = place_of("ok");
const TOOL_ERROR: usize = place_of("tool_error");
const RPC_ERROR: usize = place_of("rpc_error");
const TIMEOUT: usize = place_of("timeout");
const CANCELLED: usize = place_of("cancelled");
const UPSTREAM_UNAVAILABLE: usize = place_of("upstream_unavailable");
const BUSY: usize = place_of("busy");
const BAD_ANSWER: usize = place_of("bad_answer");
const OUTCOME_UNKNOWN: usize = place_of("outcome_unknown");

/// Where an outcome's word stands among all; a word that is not there does not compile.
const fn place_of(word: &str) -> usize {
    let mut at = 0;
    while !equal(OUTCOMES[at].as_bytes(), word.as_bytes()) {
        at += 1;
    }
    at
}

const fn equal(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

fn outcome_of(outcome: &Outcome) -> usize {
    match outcome {
        Outcome::Complete(result) if result.get(Key::IsError) == Some(b"true") => TOOL_ERROR,
        Outcome::Complete(_) | Outcome::InputRequired(_) => OK,
        Outcome::Error(Failure::Upstream(_)) => RPC_ERROR,
        Outcome::Error(Failure::Refused(refusal)) => match refusal.reason {
            Reason::Timeout => TIMEOUT,
            Reason::Cancelled => CANCELLED,
            Reason::Unavailable | Reason::Stopped => UPSTREAM_UNAVAILABLE,
            Reason::Busy => BUSY,
            Reason::BadAnswer => BAD_ANSWER,
            Reason::OutcomeUnknown => OUTCOME_UNKNOWN,
            _ => RPC_ERROR,
        },
    }
}

#[cfg(test)]
mod tests;
