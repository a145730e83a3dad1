//! Every metric: its name, its description, its handles. Nothing else names one.

use ::metrics::{
    Counter, Gauge, Histogram, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

// Values of labels that several metrics have.
mod labels;
// What comes and goes at the edges: answers over HTTP, credentials, bytes, calls by principal.
pub mod edges;
// What is looked up when the metrics are read, so that a call costs nothing for it.
pub mod sampled;
// What this process and the children take of the system.
pub mod resources;
// The way to an upstream: attempts, retries, breakers, tokens, notifications.
pub mod legs;
// The lists of upstreams: reads, sizes, what nobody sees.
pub mod catalog;
// Clients: connections, sessions, programs.
pub mod clients;
// Which configuration is in force, and since when.
pub mod configuration;
// Messages from and to clients and upstreams.
pub mod messages;

const REQUESTS: &str = "trunkline_requests_total";
const DURATION: &str = "trunkline_request_duration_seconds";
const OVERHEAD: &str = "trunkline_overhead_seconds";
const INFLIGHT: &str = "trunkline_inflight_requests";
const UP: &str = "trunkline_upstream_up";
const STATE: &str = "trunkline_upstream_state";
const RESTARTS: &str = "trunkline_upstream_restarts_total";
const INSTANCES: &str = "trunkline_upstream_instances";
const OWN_SESSIONS: &str = "trunkline_upstream_sessions";
const QUEUED: &str = "trunkline_upstream_queued_calls";
const BRIDGED: &str = "trunkline_bridged_calls_total";
const BUSY: &str = "trunkline_upstream_busy_total";
const START: &str = "trunkline_upstream_start_duration_seconds";
const STDERR: &str = "trunkline_child_stderr_lines_total";
const FAILURES: &str = "trunkline_upstream_failures_total";
const AUDIT_LOST: &str = "trunkline_audit_lines_lost_total";
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
const REFUSED: &str = "trunkline_refused_total";
const STALLS: &str = "trunkline_worker_stalls_total";
const BUILD: &str = "trunkline_build_info";

pub use labels::OUTCOMES;

/// The target of log events that are lines of a child's stderr, at level info.
pub const CHILD_STDERR: &str = "child_stderr";

/// The target of log events that say how an upstream fares, where `serve` shows a person the same in lines of its own.
pub const UPSTREAM_STATE: &str = "upstream_state";

/// The target of log events that are log messages of an upstream which no client wanted.
pub const UPSTREAM_LOG: &str = "upstream_log";

/// The target of log events that are calls: one each, where that is asked for.
pub const CALLS: &str = "calls";

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
/// How many requests ended, how long they took, and the gateway's own share of that: for charts in memory.
pub const OF_REQUESTS: [&str; 3] = [REQUESTS, DURATION, OVERHEAD];

/// Says what each metric means; once, after the recorder stands.
pub fn describe() {
    describe_counter!(REQUESTS, "Requests of clients, by method, owner and outcome");
    describe_histogram!(DURATION, Unit::Seconds, "Duration of a request, from read to outcome");
    describe_histogram!(OVERHEAD, Unit::Seconds, "Part of a request's duration that the gateway spent itself");
    describe_gauge!(INFLIGHT, "Requests in progress for an upstream, queued ones included");
    describe_gauge!(QUEUED, "Calls queued for an upstream");
    describe_counter!(BRIDGED, "Calls sent to an upstream in another era than their client's, by both eras");
    describe_counter!(BUSY, "Calls refused because the queue was full");
    describe_gauge!(UP, "1 while the upstream is ready");
    describe_gauge!(STATE, "1 for the current state of the upstream");
    describe_gauge!(INSTANCES, "Instances of an upstream beside the primary one");
    describe_gauge!(OWN_SESSIONS, "Sessions with an HTTP upstream that belong to one client each");
    describe_counter!(RESTARTS, "Restarts, by reason");
    describe_histogram!(START, Unit::Seconds, "Time from the start of an upstream to its first inventory");
    describe_counter!(STDERR, "Lines on a child's stderr");
    describe_counter!(
        FAILURES,
        "Failures of an upstream that are no protocol violations, by kind and cause code: time-outs, broken and refused responses, unread messages"
    );
    describe_counter!(AUDIT_LOST, "Lines of the audit lost because its file could not be written, or not fast enough");
    describe_counter!(LINES_LOST, "Log lines lost because stderr was not read fast enough");
    describe_counter!(VIOLATIONS, "Protocol violations by an upstream, by kind");
    describe_gauge!(SESSIONS, "Open sessions of legacy clients, by transport");
    describe_counter!(EVICTED, "Sessions ended by the gateway, by reason");
    describe_gauge!(STREAMS, "Open streams to clients, by kind");
    describe_counter!(DROPPED, "Notifications dropped, by reason");
    describe_counter!(UNASKED, "Responses of clients to no open question, by reason");
    describe_counter!(QUESTIONS, "Live questions of an upstream to clients, by kind and outcome");
    describe_histogram!(WAITING, Unit::Seconds, "How long a call waited for an answer to a question");
    describe_gauge!(PARKED, "Parked calls: they wait for the retry of a stateless client");
    describe_counter!(UNPARKED, "Parked calls that ended, by reason");
    describe_counter!(STATES_REFUSED, "Retries with an unusable requestState, by reason");
    describe_counter!(NOT_PUT, "Questions of upstreams not put to a stateless client, by reason");
    describe_gauge!(ITEMS, "What an upstream offers, by kind");
    describe_counter!(REFUSED, "Refusals of clients, by the limit that was reached");
    describe_counter!(STALLS, "Worker stalls: one task ran for longer than a second");
    describe_gauge!(BUILD, "1, with the version as a label");
    gauge!(BUILD, "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    sampled::describe();
    resources::describe();
    edges::describe();
    legs::describe();
    catalog::describe();
    clients::describe();
    configuration::describe();
    messages::describe();
    begin();
}

/// What makes a counter of a reason, and all its reasons.
type Reasons = (fn(&'static str) -> Counter, &'static [&'static str]);

/// Counters that no upstream owns are there from the start, at 0: an increase of what was not there is none.
fn begin() {
    let all: [Reasons; 7] = [
        (evicted, &["idle", "cap", "revoked"]),
        (dropped, &["no_stream", "overflow", "not_owned"]),
        (unparked, &["retried", "expired", "closed", "memory"]),
        (state_refused, &["unknown", "other_call", "expired", "lost", "used"]),
        (unasked, &["ended", "foreign"]),
        (not_put, &["full", "undeclared", "untranslatable", "unknown", "ending"]),
        (
            refused,
            &[
                "sessions",
                "connections",
                "bodies",
                "frames",
                "memory",
                "calls",
                "listens",
                "questions",
                "rate",
                "bytes",
                "concurrency",
            ],
        ),
    ];
    for (counter, reasons) in all {
        reasons.iter().for_each(|reason| counter(reason).increment(0));
    }
    [lines_lost(), audit_lines_lost(), worker_stalls()].iter().for_each(|counter| counter.increment(0));
}

/// One route's handles: made once per method and owner, not per call.
#[derive(Clone)]
pub struct Route {
    /// By outcome, in the order of [`OUTCOMES`].
    pub requests: [Counter; OUTCOMES.len()],
    /// End to end.
    pub duration: Histogram,
}

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
    /// Calls that were sent in another era than their client's: of handshake clients, and of stateless ones.
    pub bridged: [Counter; 2],
    /// 1 while ready.
    pub up: Gauge,
    /// Instances beside the primary one.
    pub instances: Gauge,
    /// Sessions that belong to one client each.
    pub sessions: Gauge,
    /// From start to inventory.
    pub start: Histogram,
    /// Lines on stderr.
    pub stderr: Counter,
    /// How long calls waited for the answers to questions.
    pub waiting: Histogram,
    /// What comes from it and goes to it.
    pub bytes: edges::Bytes,
    /// The requests that are sent to it.
    pub attempts: Arc<legs::Attempts>,
}

/// The handles of an upstream.
pub fn upstream(name: &str) -> Upstream {
    let label = || name.to_owned();
    Upstream {
        name: label(),
        inflight: gauge!(INFLIGHT, "upstream" => label()),
        queued: gauge!(QUEUED, "upstream" => label()),
        busy: counter!(BUSY, "upstream" => label()),
        bridged: [("legacy", "modern"), ("modern", "legacy")]
            .map(|(from, to)| counter!(BRIDGED, "from" => from, "to" => to)),
        instances: gauge!(INSTANCES, "upstream" => label()),
        sessions: gauge!(OWN_SESSIONS, "upstream" => label()),
        up: gauge!(UP, "upstream" => label()),
        start: histogram!(START, "upstream" => label()),
        stderr: counter!(STDERR, "upstream" => label()),
        waiting: histogram!(WAITING, "upstream" => label()),
        bytes: edges::of_upstream(name),
        attempts: Arc::new(legs::Attempts::new(name)),
    }
}

/// Shows the counters of an upstream that are made where they are first counted, at 0: to Prometheus an increase of what was not
/// there is none. Whoever reads the metrics does this at the first sight of the upstream: a start makes no counters that nobody reads.
pub fn first_seen(upstream: &str) {
    let label = || upstream.to_owned();
    for reason in RESTART_REASONS {
        counter!(RESTARTS, "upstream" => label(), "reason" => reason).increment(0);
    }
    legs::first_seen(upstream);
    catalog::first_seen(upstream);
    for kind in QUESTION_KINDS {
        for outcome in QUESTION_OUTCOMES {
            counter!(QUESTIONS, "upstream" => label(), "kind" => kind, "outcome" => outcome).increment(0);
        }
    }
}

/// Why an upstream was started again.
const RESTART_REASONS: [&str; 5] = ["exit", "crash", "lost", "hang", "start_failed"];
/// What an upstream can ask.
const QUESTION_KINDS: [&str; 3] = ["elicitation", "sampling", "roots"];
/// What becomes of a question.
const QUESTION_OUTCOMES: [&str; 8] =
    ["answered", "error", "no_answer", "timeout", "withdrawn", "untranslatable", "refused", "configured"];

impl Upstream {
    /// Shows which of all states it is in.
    pub fn state(&self, state: &'static str, all: impl Iterator<Item = &'static str>) {
        for other in all {
            gauge!(STATE, "upstream" => self.name.clone(), "state" => other).set(f64::from(u8::from(other == state)));
        }
    }

    /// Counts a start after the first, by one of [`RESTART_REASONS`].
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

    /// Counts a live question by its kind and what became of it, one of [`QUESTION_OUTCOMES`].
    pub fn questions(&self, kind: &'static str, outcome: &'static str) -> Counter {
        counter!(QUESTIONS, "upstream" => self.name.clone(), "kind" => kind, "outcome" => outcome)
    }

    /// How much of a kind it offers: `tools`, `resources`, `templates`, `prompts`.
    pub fn items(&self, kind: &'static str, count: usize) {
        gauge!(ITEMS, "upstream" => self.name.clone(), "kind" => kind).set(count as f64);
    }
}

/// How often something was forgotten that has handles: whoever keeps them finds them anew.
static FORGOTTEN: AtomicU64 = AtomicU64::new(0);

/// What was recorded of an upstream is forgotten.
pub fn forgets() {
    FORGOTTEN.fetch_add(1, Ordering::Relaxed);
}

/// How often that was so.
pub fn forgotten() -> u64 {
    FORGOTTEN.load(Ordering::Relaxed)
}

/// Lines of the audit that were lost: its file could not be written, or not fast enough.
pub fn audit_lines_lost() -> Counter {
    counter!(AUDIT_LOST)
}

/// Lines of the log that were lost, since nobody read stderr fast enough.
pub fn lines_lost() -> Counter {
    counter!(LINES_LOST)
}

/// Open sessions of a transport: `http`, `sse`, `stdio`; open connections: `websocket`, `shared`.
pub fn sessions(transport: &'static str) -> Gauge {
    gauge!(SESSIONS, "transport" => transport)
}

/// Sessions that the gateway ended: `idle`, `cap`, `revoked`.
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

/// Requests and connections of clients that were refused because something was full: `sessions`, `connections`, `bodies`, `frames`, `memory`, `calls`, `listens`,
/// `questions`; of a limit on calls: `rate`, `bytes`, `concurrency`, `upstream_rate`, `tool_rate`.
pub fn refused(full: &'static str) -> Counter {
    counter!(REFUSED, "full" => full)
}

/// A worker was at one task for longer than a second.
pub fn worker_stalls() -> Counter {
    counter!(STALLS)
}

/// Answers of clients to no open question: `ended` (the question was put here and is over), `foreign` (it was not put here).
pub fn unasked(reason: &'static str) -> Counter {
    counter!(UNASKED, "reason" => reason)
}
