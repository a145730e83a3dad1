//! What is counted of the lists of upstreams: how often they are read, how old and how large they are, what of them clients do not see.

use ::metrics::{Counter, Unit, counter, describe_counter, describe_gauge, gauge};
use std::time::SystemTime;

const REFRESHED: &str = "trunkline_catalog_refresh_total";
const READ: &str = "trunkline_catalog_read_timestamp_seconds";
const BYTES: &str = "trunkline_catalog_bytes";
const HIDDEN: &str = "trunkline_tools_hidden";
const UNAPPROVED: &str = "trunkline_tools_unapproved";
const CONFLICTS: &str = "trunkline_name_conflicts";
const CACHE: &str = "trunkline_cache_requests_total";

/// What becomes of reading the lists of an upstream.
const OUTCOMES: [&str; 2] = ["ok", "failed"];
/// What is found in the cache of inventories.
const RESULTS: [&str; 3] = ["hit", "miss", "unfit"];

/// Says what each of these metrics means.
pub(super) fn describe() {
    describe_counter!(REFRESHED, "Reads of an upstream's lists, by outcome");
    describe_gauge!(READ, Unit::Seconds, "When all lists of an upstream were read last, in seconds since 1970");
    describe_gauge!(BYTES, Unit::Bytes, "Bytes of the definitions that an upstream offers");
    describe_gauge!(HIDDEN, "Tools that upstreams offer and no client sees, by reason");
    describe_gauge!(
        UNAPPROVED,
        "Tools that are new or have changed since somebody approved them; 0 where `pin` is off"
    );
    describe_gauge!(CONFLICTS, "Names of upstreams hidden because an earlier upstream has them, too");
    describe_counter!(CACHE, "Look-ups of what an upstream offered last, by kind and result");
    RESULTS.iter().for_each(|result| cached(result).increment(0));
}

/// The counters of an upstream that are there from its first sight on.
pub(super) fn first_seen(upstream: &str) {
    OUTCOMES.iter().for_each(|outcome| refreshed(upstream, outcome).increment(0));
}

/// The lists of an upstream were read: `ok`, or `failed` in part or whole.
pub fn refreshed(upstream: &str, outcome: &'static str) -> Counter {
    counter!(REFRESHED, "upstream" => upstream.to_owned(), "outcome" => outcome)
}

/// All lists of an upstream were read just now.
pub fn read_now(upstream: &str) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    gauge!(READ, "upstream" => upstream.to_owned()).set(now.as_secs() as f64);
}

/// So many bytes of definitions an upstream offers.
pub fn bytes(upstream: &str, bytes: usize) {
    gauge!(BYTES, "upstream" => upstream.to_owned()).set(bytes as f64);
}

/// So many tools nobody sees: those that an earlier upstream has, too, those that the configuration leaves out, those that cannot be used,
/// those that wait for somebody to approve them.
pub fn hidden(contested: usize, [filtered, unusable]: [usize; 2], held: usize) {
    let reasons = [("contested", contested), ("filtered", filtered), ("unusable", unusable), ("held", held)];
    for (reason, count) in reasons {
        gauge!(HIDDEN, "reason" => reason).set(count as f64);
    }
}

/// So many tools nobody has approved as they are.
pub fn unapproved(count: usize) {
    gauge!(UNAPPROVED).set(count as f64);
}

/// So many names of all kinds are hidden, since an earlier upstream has them, too.
pub fn conflicts(count: usize) {
    gauge!(CONFLICTS).set(count as f64);
}

/// What was kept of an upstream for its next start was looked for: `hit`, `miss`, or `unfit` where it cannot be used.
pub fn cached(result: &'static str) -> Counter {
    counter!(CACHE, "kind" => "inventory", "result" => result)
}
