//! What comes and goes at the edges: answers over HTTP, credentials, bytes, calls by principal, operations by OpenTelemetry's names.

use super::clients::{self, Present};
use super::labels::OTHER;
use ::metrics::{
    Counter, Gauge, Histogram, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

const HTTP: &str = "trunkline_http_requests_total";
const AUTH: &str = "trunkline_auth_total";
const HANDSHAKES_FAILED: &str = "trunkline_tls_handshakes_failed_total";
const CERTIFICATE: &str = "trunkline_certificate_last_read_successful";
const CERTIFICATE_ENDS: &str = "trunkline_certificate_expiry_timestamp_seconds";
const FACE_BYTES: &str = "trunkline_face_bytes_total";
const QUEUE_WAIT: &str = "trunkline_upstream_queue_wait_seconds";
const UPSTREAM_BYTES: &str = "trunkline_upstream_bytes_total";
const PRINCIPALS: &str = "trunkline_principal_calls_total";
const TOOLS: &str = "trunkline_tool_calls_total";
const TOOL_DURATION: &str = "trunkline_tool_duration_seconds";
const LIMITED: &str = "trunkline_series_limited";
const REDACTIONS: &str = "trunkline_redactions_total";
const SPANS: &str = "trunkline_trace_spans_total";
const SERVER_OPERATION: &str = "mcp_server_operation_duration_seconds";
const CLIENT_OPERATION: &str = "mcp_client_operation_duration_seconds";

/// The metrics that [`OPERATION_BUCKETS`] belong to: their names and borders are OpenTelemetry's for MCP, of August 2026.
pub const OPERATIONS: [&str; 2] = [SERVER_OPERATION, CLIENT_OPERATION];
/// Bucket borders of operations, in seconds.
pub const OPERATION_BUCKETS: [f64; 14] =
    [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];

/// So many principals have a series of their own.
const PRINCIPALS_MAX: usize = 100;
/// So many tools have series of their own.
const TOOLS_MAX: usize = 1000;
/// So many tools have durations of their own: each has seventeen series.
const TIMED_TOOLS_MAX: usize = 100;
/// Names of calls are kept up to this length: a longer one is no label that a call would count at.
const TOOL_BYTES_MAX: usize = 64;
/// The outcomes of a tool that are shown before its first call.
const TOOL_OUTCOMES: [&str; 2] = ["ok", "tool_error"];

/// Says what each of these metrics means, and has those begin at 0 whose labels are known.
pub(super) fn describe() {
    describe_counter!(REDACTIONS, "Secrets taken out of texts, of calls and of results");
    describe_counter!(HTTP, "Answers over HTTP, by face and status");
    describe_counter!(AUTH, "Requests that were to bear a token, by outcome");
    describe_counter!(HANDSHAKES_FAILED, "TLS handshakes of clients that failed, by reason");
    describe_gauge!(CERTIFICATE, "1 while the certificate of the files is in force; 0 once it could not be used");
    describe_gauge!(CERTIFICATE_ENDS, Unit::Seconds, "When the certificate in force expires, by listener");
    describe_counter!(FACE_BYTES, Unit::Bytes, "Bytes from and to clients, by face and direction");
    describe_histogram!(
        QUEUE_WAIT,
        Unit::Seconds,
        "How long a call waited for a place at its upstream, or for its start"
    );
    describe_counter!(UPSTREAM_BYTES, Unit::Bytes, "Bytes from and to an upstream, by direction");
    describe_counter!(PRINCIPALS, "Requests of clients, by principal");
    describe_counter!(TOOLS, "Calls of tools, by owner, public name and outcome (`[metrics] per_tool`)");
    describe_histogram!(TOOL_DURATION, Unit::Seconds, "Duration of calls of a tool (`[metrics] tool_durations`)");
    describe_gauge!(LIMITED, "1 while names share the series `_other` because there are too many, by kind");
    describe_histogram!(SERVER_OPERATION, Unit::Seconds, "Duration of a request of a client, by OpenTelemetry's name");
    describe_histogram!(
        CLIENT_OPERATION,
        Unit::Seconds,
        "Duration of a request to an upstream, by OpenTelemetry's name"
    );
    describe_counter!(SPANS, "Spans of traces, by outcome");
    ["sent", "dropped"].iter().for_each(|outcome| spans(outcome).increment(0));
    AUTH_OUTCOMES.iter().for_each(|outcome| auth(outcome).increment(0));
    ["principal", "tool", "tool_duration"].iter().for_each(|kind| gauge!(LIMITED, "kind" => *kind).increment(0.0));
}

/// Secrets that were taken out of texts, of a `call` or of a `result`.
pub fn redactions(upstream: Arc<str>, of: &'static str) -> Counter {
    counter!(REDACTIONS, "upstream" => upstream, "of" => of)
}

/// How long calls waited before they were sent to an upstream; those that were sent at once are not among them.
pub fn queue_wait(upstream: &Arc<str>) -> Histogram {
    histogram!(QUEUE_WAIT, "upstream" => upstream.to_string())
}

/// The files of the certificate for clients were read.
pub fn certificate_read(is_good: bool) {
    gauge!(CERTIFICATE).set(f64::from(u8::from(is_good)));
}

/// The certificate of the table `key` of the configuration is in force, and expires then.
pub fn certificate_ends(key: &str, at: SystemTime) {
    let seconds = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    gauge!(CERTIFICATE_ENDS, "listener" => key.to_owned()).set(seconds as f64);
}

/// Spans of traces that the collector took (`sent`), or that found no room or no collector (`dropped`).
pub fn spans(outcome: &'static str) -> Counter {
    counter!(SPANS, "outcome" => outcome)
}

/// Statuses that have a series of their own; all others share one.
const STATUSES: [u16; 17] = [200, 202, 204, 400, 401, 403, 404, 405, 406, 408, 409, 413, 415, 421, 429, 500, 503];

/// What is counted at one face. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Face(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    /// By [`STATUSES`]; the last are all others.
    statuses: Box<[Counter]>,
    bytes: Bytes,
    connections: Gauge,
}

impl Face {
    /// What is counted at the face of this name: `http`, `admin`, `stdio`.
    pub fn new(face: &'static str) -> Self {
        let labels = STATUSES.iter().map(u16::to_string).chain([OTHER.to_owned()]);
        let status = |label| counter!(HTTP, "face" => face, "code" => label);
        // What is no HTTP has no status.
        let statuses = if face == "stdio" { Box::default() } else { labels.map(status).collect() };
        let bytes = ["in", "out"].map(|direction| counter!(FACE_BYTES, "face" => face, "direction" => direction));
        bytes.iter().for_each(|bytes| bytes.increment(0));
        let [read, written] = bytes;
        let connections = if face == "stdio" { Gauge::noop() } else { clients::connections(face) };
        Self(Arc::new(Counts { statuses, bytes: Bytes { read, written }, connections }))
    }

    /// An answer with this status.
    pub fn answered(&self, status: u16) {
        let at = STATUSES.iter().position(|known| *known == status).unwrap_or(STATUSES.len());
        if let Some(counter) = self.0.statuses.get(at) {
            counter.increment(1);
        }
    }

    /// A connection is open, for as long as what is returned.
    pub fn connected(&self) -> Present {
        clients::connected(&self.0.connections)
    }

    /// What comes in and goes out there.
    pub fn bytes(&self) -> &Bytes {
        &self.0.bytes
    }
}

/// Counts what comes in and what goes out. The default counts nothing.
#[derive(Debug, Clone)]
pub struct Bytes {
    /// What was read.
    pub read: Counter,
    /// What was written.
    pub written: Counter,
}

impl Default for Bytes {
    fn default() -> Self {
        Self { read: Counter::noop(), written: Counter::noop() }
    }
}

/// The bytes from and to an upstream.
pub(super) fn of_upstream(upstream: &str) -> Bytes {
    let bytes = ["in", "out"]
        .map(|direction| counter!(UPSTREAM_BYTES, "upstream" => upstream.to_owned(), "direction" => direction));
    let [read, written] = bytes;
    Bytes { read, written }
}

/// What becomes of a request that is to bear a token.
pub const AUTH_OUTCOMES: [&str; 6] = ["accepted", "missing", "unknown", "expired", "scope", "unverified"];

/// Why a TLS handshake of a client fails: its certificate, an alert of its own, no TLS, too slow, closed meanwhile.
pub const HANDSHAKES: [&str; 5] = ["certificate", "refused", "protocol", "timeout", "gone"];

/// TLS handshakes of clients that failed, by one of [`HANDSHAKES`].
pub fn handshake_failed(reason: &'static str) -> Counter {
    let counter = counter!(HANDSHAKES_FAILED, "reason" => reason);
    counter.increment(0);
    counter
}

/// Requests that were to bear a token, by one of [`AUTH_OUTCOMES`].
pub fn auth(outcome: &'static str) -> Counter {
    counter!(AUTH, "outcome" => outcome)
}

/// Names that have a series of their own.
struct Names {
    kind: &'static str,
    most: usize,
    known: Mutex<Option<HashSet<String>>>,
}

static PRINCIPAL_NAMES: Names = Names { kind: "principal", most: PRINCIPALS_MAX, known: Mutex::new(None) };
static TOOL_NAMES: Names = Names { kind: "tool", most: TOOLS_MAX, known: Mutex::new(None) };

static TIMED_NAMES: Names = Names { kind: "tool_duration", most: TIMED_TOOLS_MAX, known: Mutex::new(None) };
/// Whether calls are counted by tool.
static COUNTS_TOOLS: AtomicBool = AtomicBool::new(false);

impl Names {
    /// Whether a name has a series of its own already.
    fn knows(&self, key: &str) -> bool {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().is_some_and(|known| known.contains(key))
    }

    /// The label of a name: itself, as long as there is room.
    fn label(&self, key: &str, name: &str) -> String {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default();
        if known.contains(key) || (known.len() < self.most && known.insert(key.to_owned())) {
            return name.to_owned();
        }
        gauge!(LIMITED, "kind" => self.kind).set(1.0);
        OTHER.to_owned()
    }
}

/// Requests of a principal; of those beyond a hundred together.
pub fn principal(name: &str) -> Counter {
    let name = if name.is_empty() { "anonymous" } else { name };
    counter!(PRINCIPALS, "principal" => PRINCIPAL_NAMES.label(name, name))
}

/// Calls of a tool that ended so; of those beyond a thousand tools together.
pub fn tool(upstream: &str, tool: &str, outcome: &'static str) -> Counter {
    let label = TOOL_NAMES.label(&format!("{upstream}/{tool}"), tool);
    counter!(TOOLS, "upstream" => upstream.to_owned(), "tool" => label, "outcome" => outcome)
}

/// From now on calls are counted by tool.
pub fn count_tools() {
    COUNTS_TOOLS.store(true, Ordering::Relaxed);
}

/// Tools are offered: where calls are counted by tool, those of each are there at 0 before the first.
pub fn tools_offered<'a>(tools: impl Iterator<Item = (&'a str, &'a str)>) {
    if !COUNTS_TOOLS.load(Ordering::Relaxed) {
        return;
    }
    let is_new = |(upstream, name): &(&str, &str)| {
        name.len() <= TOOL_BYTES_MAX && !TOOL_NAMES.knows(&format!("{upstream}/{name}"))
    };
    for (upstream, name) in tools.filter(is_new).take(TOOLS_MAX) {
        TOOL_OUTCOMES.iter().for_each(|outcome| tool(upstream, name, outcome).increment(0));
    }
}

/// How long calls of a tool take; those beyond a hundred tools together.
pub fn tool_duration(upstream: &str, tool: &str) -> Histogram {
    let label = TIMED_NAMES.label(&format!("{upstream}/{tool}"), tool);
    histogram!(TOOL_DURATION, "upstream" => upstream.to_owned(), "tool" => label)
}

/// The duration of a request of a client, from read to outcome; `error` is empty where it succeeded.
pub fn server_operation(method: &'static str, error: &'static str) -> Histogram {
    histogram!(SERVER_OPERATION, "mcp_method_name" => method, "error_type" => error)
}

/// The duration of a request to an upstream, from sent to answered; `error` is empty where it succeeded.
pub fn client_operation(method: &'static str, error: &'static str) -> Histogram {
    histogram!(CLIENT_OPERATION, "mcp_method_name" => method, "error_type" => error)
}
