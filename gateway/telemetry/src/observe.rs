//! The outermost layer of the chain: counts and times every call.

// Spans of calls, where they are asked for.
pub mod traces;

use super::access;
use super::access::Line;
use super::calls::{About, Calls, End, Name, Place};
use super::config::Metrics;
use super::recorder::exemplar;
use crate::call::reply::{Ending, Guard, Outcome, Reply};
use crate::call::{Call, Handle};
use crate::protocol::frame::Method;
use crate::protocol::meta::trace::Context;
use ::metrics::{Counter, Histogram};
use arc_swap::ArcSwap;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;
use tokio::time::Instant;
use traces::{Going, Traces};
use trunkline_foundation::metrics;
use trunkline_foundation::metrics::edges;
use trunkline_foundation::metrics::{OUTCOMES, Route};

/// A layer that counts calls by method, owner and outcome, times them, and shows which are under way.
#[derive(Clone, Default)]
pub struct Observe {
    routes: Arc<Routes>,
    calls: Calls,
    config: Metrics,
    traces: Option<Traces>,
}

impl Observe {
    /// Counts as the configuration says, and shows calls here.
    pub fn new(config: Metrics, calls: Calls) -> Self {
        if config.per_tool {
            edges::count_tools();
        }
        Self { routes: Arc::default(), calls, config, traces: None }
    }

    /// The same, which makes spans of calls where that is asked for.
    #[must_use]
    pub fn tracing(self, traces: Option<Traces>) -> Self {
        Self { traces, ..self }
    }
}

impl<H: Handle> tower::Layer<H> for Observe {
    type Service = Observed<H>;

    fn layer(&self, inner: H) -> Observed<H> {
        Observed { inner, observe: self.clone() }
    }
}

/// A handler whose calls are counted.
pub struct Observed<H> {
    inner: H,
    observe: Observe,
}

impl<H: Handle> Handle for Observed<H> {
    fn handle(&self, mut call: Call) -> Reply {
        let Observe { routes, calls, config, traces } = &self.observe;
        let start = Instant::now();
        let principal = call.caller.principal.clone();
        principal.calls().increment(1);
        let (method, is_listen) = (call.method.label(), call.method == Method::Listen);
        let is_tool = call.method == Method::ToolsCall;
        let name = match is_tool || call.method == Method::PromptsGet {
            true => Name::of(&call.params),
            false => Name::default(),
        };
        let line = Line::is_wanted().then(|| Line::of(&call, name));
        let span = traces.as_ref().and_then(|traces| traces.begin(&mut call));
        let reply = self.inner.handle(call);
        let route = routes.of(method, reply.owner());
        // Only a name that an upstream has is one that nobody made up.
        let tool = (config.per_tool && is_tool && reply.owner().is_some())
            .then(|| route.tool(&name.text(), config.tool_durations));
        let place = calls.begin(About { began: start, method, principal, name, upstream: reply.owner().cloned() });
        let calls = calls.clone();
        reply.attach(Box::new(Watch {
            route: Some(route),
            start,
            is_listen,
            tool,
            calls,
            place,
            line,
            span,
            is_withdrawn: false,
        }))
    }
}

/// One method's and owner's handles.
struct Handles {
    method: &'static str,
    /// Whose it is.
    owner: Arc<str>,
    route: Route,
    overhead: Histogram,
    /// By outcome, made with the first of it: most outcomes never come.
    operations: [OnceLock<Operation>; OUTCOMES.len()],
    /// By public name, where calls are counted by tool.
    tools: ArcSwap<HashMap<Box<str>, Arc<Tool>, Plain>>,
}

/// The handles of one tool.
#[derive(Default)]
struct Tool {
    /// By outcome, made with the first of it.
    calls: [OnceLock<Counter>; OUTCOMES.len()],
    /// Where calls are timed by tool.
    duration: Option<Histogram>,
}

/// The durations of one outcome by OpenTelemetry's names: of the client's request, and of the one to the upstream.
struct Operation {
    server: Histogram,
    client: Histogram,
}

impl Handles {
    fn new(method: &'static str, owner: &Arc<str>) -> Self {
        let (route, overhead) = (metrics::route(method, owner), metrics::overhead(method));
        let (operations, tools) = (Default::default(), ArcSwap::default());
        Self { method, owner: owner.clone(), route, overhead, operations, tools }
    }

    /// The counters of a tool.
    fn tool(&self, name: &str, is_timed: bool) -> ToolOf {
        let name: Box<str> = name.into();
        if let Some(tool) = self.tools.load().get(&name) {
            return ToolOf { name, tool: tool.clone() };
        }
        let duration = is_timed.then(|| edges::tool_duration(&self.owner, &name));
        let tool = Arc::new(Tool { duration, ..Tool::default() });
        // What finds no room here counts all the same, and looks its counter up each time.
        self.tools.rcu(|known| {
            let mut known = HashMap::clone(known);
            if known.len() < TOOLS_MAX {
                known.entry(name.clone()).or_insert_with(|| tool.clone());
            }
            known
        });
        ToolOf { name, tool }
    }

    /// A request has ended so, after this time, of which the upstream had it for that.
    fn timed(&self, outcome: usize, duration: Duration, upstream_time: Duration) {
        let seconds = duration.as_secs_f64();
        self.route.duration.record(seconds);
        let operation = self.operations[outcome].get_or_init(|| {
            let error = if outcome == Outcome::OK { "" } else { OUTCOMES[outcome] };
            Operation {
                server: edges::server_operation(self.method, error),
                client: edges::client_operation(self.method, error),
            }
        });
        operation.server.record(seconds);
        if !upstream_time.is_zero() {
            operation.client.record(upstream_time.as_secs_f64());
        }
    }
}

/// So many tools of one upstream have their counters at hand.
const TOOLS_MAX: usize = 1000;

/// One tool that is called.
struct ToolOf {
    name: Box<str>,
    tool: Arc<Tool>,
}

impl ToolOf {
    /// A call of it has ended so.
    fn ended(&self, owner: &str, outcome: usize, duration: Duration) {
        self.tool.duration.iter().for_each(|of| of.record(duration.as_secs_f64()));
        let counter = self.tool.calls[outcome].get_or_init(|| edges::tool(owner, &self.name, OUTCOMES[outcome]));
        counter.increment(1);
    }
}

/// All handles by owner and method: few, and made once; read without a lock.
#[derive(Default)]
struct Routes {
    known: ArcSwap<HashMap<Arc<str>, ByMethod, Plain>>,
    /// How often the handles of an upstream had been forgotten when these were made.
    forgotten: AtomicU64,
}

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
        let forgotten = metrics::forgotten();
        if self.forgotten.load(Ordering::Relaxed) != forgotten {
            self.forgotten.store(forgotten, Ordering::Relaxed);
            self.known.store(Arc::default());
        }
        if let Some(handles) = self.known.load().get(owner).and_then(|methods| methods.get(method)) {
            return handles.clone();
        }
        let handles = Arc::new(Handles::new(method, owner));
        self.known.rcu(|known| {
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
    tool: Option<ToolOf>,
    calls: Calls,
    place: Place,
    /// What the log says of it, where each call has a line.
    line: Option<Box<Line>>,
    /// What a trace says of it, where it is a part of one.
    span: Option<Box<Going>>,
    /// Whether its client has withdrawn it.
    is_withdrawn: bool,
}

impl Watch {
    /// Its span, where it is a part of a trace.
    fn context(&self) -> Option<&Context> {
        self.span.as_deref().map(Going::context)
    }

    /// It has ended: shown, and logged where that is asked for.
    fn ended(&self, handles: &Handles, outcome: usize, duration: Duration, seen: Seen<'_>) {
        if let Some(tool) = &self.tool {
            tool.ended(&handles.owner, outcome, duration);
        }
        let Seen { upstream_time, queue_time, .. } = seen;
        let (outcome, at) = (OUTCOMES[outcome], self.start + duration);
        if let Some(line) = &self.line {
            let upstream_time = (!upstream_time.is_zero()).then_some(upstream_time);
            let (method, upstream, bytes_out) = (handles.method, seen.owner, seen.bytes);
            line.write(&access::Ended { method, upstream, outcome, duration, upstream_time, bytes_out });
        }
        self.calls.end(&self.place, End { outcome, duration, upstream_time, queue_time, at });
    }
}

/// What was seen of the end of a call.
#[derive(Default)]
struct Seen<'a> {
    owner: Option<&'a Arc<str>>,
    upstream_time: Duration,
    queue_time: Duration,
    bytes: usize,
}

impl Guard for Watch {
    fn done(&mut self, ending: &Ending<'_>) {
        let Some(handles) = self.route.take() else { return };
        let (outcome, upstream_time) = (ending.outcome.place(), ending.upstream_time);
        let queue_time = ending.queue_time;
        handles.route.requests[outcome].increment(1);
        let duration = self.start.elapsed();
        // A listen call lasts as long as its client likes: that is no duration of ours.
        if !self.is_listen {
            exemplar::of_span(self.context(), || {
                handles.timed(outcome, duration, upstream_time);
                // Neither is the work of the gateway: it waits for an answer, or for a place or a start of the upstream.
                handles.overhead.record(duration.saturating_sub(upstream_time + queue_time).as_secs_f64());
            });
        }
        if !queue_time.is_zero() {
            edges::queue_wait(&handles.owner).record(queue_time.as_secs_f64());
        }
        let bytes = if self.line.is_some() { access::bytes_of(ending.outcome) } else { 0 };
        if let Some(span) = self.span.take() {
            span.end(ending.owner, Some(ending.outcome));
        }
        self.ended(&handles, outcome, duration, Seen { owner: ending.owner, upstream_time, queue_time, bytes });
    }

    fn withdrawn(&mut self) {
        self.is_withdrawn = true;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(handles) = self.route.take() {
            // Nobody listens for ever: the end of a listen call is no cancellation.
            let outcome = match (self.is_listen, self.is_withdrawn) {
                (true, _) => Outcome::OK,
                (false, true) => Outcome::CANCELLED,
                (false, false) => Outcome::CLIENT_GONE,
            };
            handles.route.requests[outcome].increment(1);
            let duration = self.start.elapsed();
            if !self.is_listen {
                exemplar::of_span(self.context(), || handles.timed(outcome, duration, Duration::ZERO));
            }
            let owner = (*handles.owner != *metrics::GATEWAY).then_some(&handles.owner);
            if let Some(span) = self.span.take() {
                span.end(owner, None);
            }
            self.ended(&handles, outcome, duration, Seen { owner, ..Seen::default() });
        }
    }
}

#[cfg(test)]
mod tests;
