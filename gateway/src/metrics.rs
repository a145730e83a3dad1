//! Every metric: its name, its description, its handles. Nothing else names one.

use ::metrics::{
    Counter, Gauge, Histogram, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

const REQUESTS: &str = "trunkline_requests_total";
const DURATION: &str = "trunkline_request_duration_seconds";
const OVERHEAD: &str = "trunkline_overhead_seconds";
const INFLIGHT: &str = "trunkline_inflight_requests";
const UP: &str = "trunkline_upstream_up";
const STATE: &str = "trunkline_upstream_state";
const UPTIME: &str = "trunkline_upstream_uptime_seconds";
const PID: &str = "trunkline_upstream_pid";
const REVISION: &str = "trunkline_upstream_revision";
const RESTARTS: &str = "trunkline_upstream_restarts_total";
const INSTANCES: &str = "trunkline_upstream_instances";
const QUEUED: &str = "trunkline_upstream_queued_calls";
const BUSY: &str = "trunkline_upstream_busy_total";
const START: &str = "trunkline_upstream_start_duration_seconds";
const STDERR: &str = "trunkline_child_stderr_lines_total";
const FAILURES: &str = "trunkline_upstream_failures_total";
const LINES_LOST: &str = "trunkline_log_lines_lost_total";
const VIOLATIONS: &str = "trunkline_protocol_violations_total";
const SESSIONS: &str = "trunkline_sessions";
const EVICTED: &str = "trunkline_sessions_evicted_total";
const STREAMS: &str = "trunkline_streams";
const DROPPED: &str = "trunkline_notifications_dropped_total";
const UNASKED: &str = "trunkline_unasked_answers_total";
const QUESTIONS: &str = "trunkline_questions_total";
const WAITING: &str = "trunkline_waiting_for_input_seconds";
const PARKED: &str = "trunkline_parked_calls";
const UNPARKED: &str = "trunkline_parked_calls_ended_total";
const STATES_REFUSED: &str = "trunkline_request_states_refused_total";
const NOT_PUT: &str = "trunkline_questions_not_put_total";
const ITEMS: &str = "trunkline_catalog_items";
const PENDING: &str = "trunkline_pending_requests";
const TASKS: &str = "trunkline_tasks";
const MEMORY: &str = "trunkline_memory_bytes";
const MEMORY_LIMIT: &str = "trunkline_memory_limit_bytes";
const MEMORY_LOST: &str = "trunkline_memory_lost_total";
const REFUSED: &str = "trunkline_refused_total";
const STALLS: &str = "trunkline_worker_stalls_total";
const BUILD: &str = "trunkline_build_info";

/// The target of log events that are lines of a child's stderr, at level info.
pub const CHILD_STDERR: &str = "child_stderr";

/// The target of log events that say how an upstream fares, where `serve` shows a person the same in lines of its own.
pub const UPSTREAM_STATE: &str = "upstream_state";

/// The target of log events that are log messages of an upstream which no client wanted.
pub const UPSTREAM_LOG: &str = "upstream_log";

/// The target of log events that tell how many others about an upstream were left out.
pub const LEFT_OUT: &str = "left_out";

/// The upstream label of what the gateway answers itself.
pub const GATEWAY: &str = "_gateway";

/// Bucket borders of durations that include an upstream's work, in seconds.
pub const DURATION_BUCKETS: [f64; 15] =
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];
/// Bucket borders of the gateway's own share, in seconds.
pub const OVERHEAD_BUCKETS: [f64; 12] = [1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2];
/// The metrics that [`OVERHEAD_BUCKETS`] belong to; all other histograms have [`DURATION_BUCKETS`].
pub const OVERHEAD_METRICS: [&str; 1] = [OVERHEAD];

/// Says what each metric means; once, after the recorder stands.
pub fn describe() {
    describe_counter!(REQUESTS, "Requests of clients, by method, owner and outcome");
    describe_histogram!(DURATION, Unit::Seconds, "Duration of a request, from read to outcome");
    describe_histogram!(OVERHEAD, Unit::Seconds, "Part of a request's duration that the gateway spent itself");
    describe_gauge!(INFLIGHT, "Requests in progress for an upstream, queued ones included");
    describe_gauge!(QUEUED, "Calls queued for an upstream");
    describe_counter!(BUSY, "Calls refused because the queue was full");
    describe_gauge!(UP, "1 while the upstream is ready");
    describe_gauge!(STATE, "1 for the current state of the upstream");
    describe_gauge!(UPTIME, Unit::Seconds, "Seconds since the upstream became available; 0 while it is not");
    describe_gauge!(PID, "The process id of the upstream's child; 0 while there is none");
    describe_gauge!(REVISION, "1 for the protocol revision that the upstream spoke last");
    describe_gauge!(INSTANCES, "Instances of an upstream beside the primary one");
    describe_counter!(RESTARTS, "Restarts, by reason");
    describe_histogram!(START, Unit::Seconds, "Time from the start of an upstream to its first inventory");
    describe_counter!(STDERR, "Lines on a child's stderr");
    describe_counter!(
        FAILURES,
        "Failures of an upstream that are no protocol violations, by kind and cause code: time-outs, broken and refused responses, unread messages"
    );
    describe_counter!(LINES_LOST, "Log lines lost because stderr was not read fast enough");
    describe_counter!(VIOLATIONS, "Protocol violations by an upstream, by kind");
    describe_gauge!(SESSIONS, "Open sessions of legacy clients, by transport");
    describe_counter!(EVICTED, "Sessions ended by the gateway, by reason");
    describe_gauge!(STREAMS, "Open streams to clients, by kind");
    describe_counter!(DROPPED, "Notifications dropped, by reason");
    describe_counter!(UNASKED, "Responses of clients to no open question");
    describe_counter!(QUESTIONS, "Live questions of an upstream to clients, by kind and outcome");
    describe_histogram!(WAITING, Unit::Seconds, "How long a call waited for an answer to a question");
    describe_gauge!(PARKED, "Parked calls: they wait for the retry of a stateless client");
    describe_counter!(UNPARKED, "Parked calls that ended, by reason");
    describe_counter!(STATES_REFUSED, "Retries with an unusable requestState, by reason");
    describe_counter!(NOT_PUT, "Questions of upstreams not put to a stateless client, by reason");
    describe_gauge!(ITEMS, "What an upstream offers, by kind");
    describe_gauge!(PENDING, "Requests in flight on the pipes to an upstream, without cancelled ones");
    describe_gauge!(TASKS, "Running tasks of the gateway");
    describe_gauge!(MEMORY, Unit::Bytes, "Memory held for peers, in steps of 16 KiB, by kind");
    describe_gauge!(MEMORY_LIMIT, Unit::Bytes, "Limit of the memory held for peers (`server.memory_limit`)");
    describe_counter!(MEMORY_LOST, "Large messages dropped because the memory limit was reached, by kind");
    describe_counter!(REFUSED, "Refusals of clients, by the limit that was reached");
    describe_counter!(STALLS, "Worker stalls: one task ran for longer than a second");
    counter!(STALLS).increment(0);
    describe_gauge!(BUILD, "1, with the version as a label");
    gauge!(BUILD, "version" => env!("CARGO_PKG_VERSION")).set(1.0);
}

/// One route's handles: made once per method and owner, not per call.
#[derive(Clone)]
pub struct Route {
    /// By outcome, in the order of [`OUTCOMES`].
    pub requests: [Counter; OUTCOMES.len()],
    /// End to end.
    pub duration: Histogram,
}

/// How a request can end, as the `outcome` label says it. `upstream_unavailable` and `busy`: nothing was sent; `outcome_unknown`: it
/// was sent and has no answer; `bad_answer`: the answer breaks the protocol.
pub const OUTCOMES: [&str; 9] = [
    "ok",
    "tool_error",
    "rpc_error",
    "timeout",
    "cancelled",
    "upstream_unavailable",
    "busy",
    "bad_answer",
    "outcome_unknown",
];

/// The handles of a method and the upstream that owns the call.
pub fn route(method: &'static str, upstream: &Arc<str>) -> Route {
    let upstream = upstream.to_string();
    Route {
        requests: OUTCOMES.map(
            |outcome| counter!(REQUESTS, "method" => method, "upstream" => upstream.clone(), "outcome" => outcome),
        ),
        duration: histogram!(DURATION, "method" => method, "upstream" => upstream),
    }
}

/// The gateway's own share of a method's duration.
pub fn overhead(method: &'static str) -> Histogram {
    histogram!(OVERHEAD, "method" => method)
}

/// The handles of one upstream.
#[derive(Clone)]
pub struct Upstream {
    name: String,
    /// Requests under way.
    pub inflight: Gauge,
    /// Calls that wait to be sent.
    pub queued: Gauge,
    /// Calls that were refused because too many waited.
    pub busy: Counter,
    /// 1 while ready.
    pub up: Gauge,
    /// Instances beside the primary one.
    pub instances: Gauge,
    /// From start to inventory.
    pub start: Histogram,
    /// Lines on stderr.
    pub stderr: Counter,
    /// How long calls waited for the answers to questions.
    pub waiting: Histogram,
}

/// The handles of an upstream.
pub fn upstream(name: &str) -> Upstream {
    let label = || name.to_owned();
    Upstream {
        name: label(),
        inflight: gauge!(INFLIGHT, "upstream" => label()),
        queued: gauge!(QUEUED, "upstream" => label()),
        busy: counter!(BUSY, "upstream" => label()),
        instances: gauge!(INSTANCES, "upstream" => label()),
        up: gauge!(UP, "upstream" => label()),
        start: histogram!(START, "upstream" => label()),
        stderr: counter!(STDERR, "upstream" => label()),
        waiting: histogram!(WAITING, "upstream" => label()),
    }
}

impl Upstream {
    /// Shows which of all states it is in.
    pub fn state(&self, state: &'static str, all: impl Iterator<Item = &'static str>) {
        for other in all {
            gauge!(STATE, "upstream" => self.name.clone(), "state" => other).set(f64::from(u8::from(other == state)));
        }
    }

    /// Counts a start after the first: `exit`, `crash`, `lost`, `hang`, `start_failed`.
    pub fn restarts(&self, reason: &'static str) -> Counter {
        counter!(RESTARTS, "upstream" => self.name.clone(), "reason" => reason)
    }

    /// Counts what failed and breaks no rule of the protocol: `broken`, `unreachable`, `status`, `timeout`, `unread`, `busy`,
    /// `session`, `task_cancelled`, `background_stream`.
    pub fn failures(&self, kind: &'static str, code: &'static str) -> Counter {
        counter!(FAILURES, "upstream" => self.name.clone(), "kind" => kind, "code" => code)
    }

    /// Counts what it sent that the protocol does not allow; `kind` comes from the code, never from a peer.
    pub fn violations(&self, kind: &'static str) -> Counter {
        counter!(VIOLATIONS, "upstream" => self.name.clone(), "kind" => kind)
    }

    /// Counts a live question by its kind (`elicitation`, `sampling`, `roots`) and what became of it: `answered`, `error`,
    /// `no_answer`, `timeout`, `withdrawn`, `untranslatable`, `refused`, `configured`.
    pub fn questions(&self, kind: &'static str, outcome: &'static str) -> Counter {
        counter!(QUESTIONS, "upstream" => self.name.clone(), "kind" => kind, "outcome" => outcome)
    }

    /// How much of a kind it offers: `tools`, `resources`, `templates`, `prompts`.
    pub fn items(&self, kind: &'static str, count: usize) {
        gauge!(ITEMS, "upstream" => self.name.clone(), "kind" => kind).set(count as f64);
    }
}

/// Shows what is known of an upstream when it is asked for: how long it has been up, its child, its revision among all.
pub fn shown(upstream: &str, uptime: f64, pid: u32, revision: Option<&str>, all: impl Iterator<Item = &'static str>) {
    let label = || upstream.to_owned();
    gauge!(UPTIME, "upstream" => label()).set(uptime);
    gauge!(PID, "upstream" => label()).set(f64::from(pid));
    // Of one that never spoke nothing is shown.
    for other in all.filter(|_| revision.is_some()) {
        let is_it = revision == Some(other);
        gauge!(REVISION, "upstream" => label(), "revision" => other).set(f64::from(u8::from(is_it)));
    }
}

/// Lines of the log that were lost, since nobody read stderr fast enough.
pub fn lines_lost() -> Counter {
    counter!(LINES_LOST)
}

/// Open sessions of a transport: `http`, `stdio`.
pub fn sessions(transport: &'static str) -> Gauge {
    gauge!(SESSIONS, "transport" => transport)
}

/// Sessions that the gateway ended: `idle`, `cap`.
pub fn evicted(reason: &'static str) -> Counter {
    counter!(EVICTED, "reason" => reason)
}

/// Open streams: `sse`, `listen`.
pub fn streams(kind: &'static str) -> Gauge {
    gauge!(STREAMS, "kind" => kind)
}

/// Notifications that reached nobody: `no_stream`, `overflow`, `not_owned`.
pub fn dropped(reason: &'static str) -> Counter {
    counter!(DROPPED, "reason" => reason)
}

/// Calls that wait for the retry of a stateless client.
pub fn parked() -> Gauge {
    gauge!(PARKED)
}

/// Calls that waited for a retry and do no longer: `retried`, `expired`, `closed`, `memory`.
pub fn unparked(reason: &'static str) -> Counter {
    counter!(UNPARKED, "reason" => reason)
}

/// Retries whose state leads nowhere: `unknown`, `other_call`, `expired`, `lost`, `used`.
pub fn state_refused(reason: &'static str) -> Counter {
    counter!(STATES_REFUSED, "reason" => reason)
}

/// Questions that were not put to a stateless client: `full`, `undeclared`, `untranslatable`, `unknown`, `ending`.
pub fn not_put(reason: &'static str) -> Counter {
    counter!(NOT_PUT, "reason" => reason)
}

/// Requests and connections of clients that were refused for want of room: `sessions`, `connections`, `bodies`, `memory`, `calls`, `listens`.
pub fn refused(full: &'static str) -> Counter {
    counter!(REFUSED, "full" => full)
}

/// A worker was at one task for longer than a second.
pub fn worker_stalls() -> Counter {
    counter!(STALLS)
}

/// Answers of clients to what was never asked of them, or is no longer.
pub fn unasked() -> Counter {
    counter!(UNASKED)
}

/// Asked how many requests wait on a pipe; `None` once the pipe is gone.
type Waiting = Box<dyn Fn() -> Option<usize> + Send>;

/// The pipes that there are, by upstream.
static PIPES: Mutex<Vec<(String, Waiting)>> = Mutex::new(Vec::new());

/// Counts what waits on a pipe: when the metrics are read, so that a request costs nothing for it.
pub fn pending(upstream: &str, waiting: impl Fn() -> Option<usize> + Send + 'static) {
    let mut pipes = PIPES.lock().unwrap_or_else(PoisonError::into_inner);
    pipes.retain(|(_, waiting)| waiting().is_some());
    pipes.push((upstream.to_owned(), Box::new(waiting)));
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
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    PIPES.lock().unwrap_or_else(PoisonError::into_inner).retain(|(upstream, waiting)| {
        let waits = waiting();
        *counts.entry(upstream.clone()).or_default() += waits.unwrap_or_default();
        waits.is_some()
    });
    for (upstream, count) in counts {
        gauge!(PENDING, "upstream" => upstream).set(count as f64);
    }
}
