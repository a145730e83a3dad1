//! What is counted of the configuration: how often it was read anew, when, and which one is in force.

use ::metrics::{Unit, counter, describe_counter, describe_gauge, gauge};
use std::time::SystemTime;

const RELOADS: &str = "trunkline_config_reloads_total";
const RELOADED: &str = "trunkline_config_last_reload_successful";
const RELOADED_AT: &str = "trunkline_config_last_reload_timestamp_seconds";
const HASH: &str = "trunkline_config_hash";

/// Says what each of these metrics means.
pub(super) fn describe() {
    describe_counter!(RELOADS, "Reads of the configuration after the start, by outcome");
    describe_gauge!(RELOADED, "1 while the configuration of the files is in force; 0 once it was refused");
    describe_gauge!(RELOADED_AT, Unit::Seconds, "When the configuration in force was read, in seconds since 1970");
    describe_gauge!(
        HASH,
        "A number of the keys and values in force, secrets left out: the same for the same configuration"
    );
}

/// The configuration was read anew, with this outcome: `applied`, `unchanged`, `refused`; nothing: it was read at the start.
pub fn reloaded(outcome: Option<&'static str>) {
    for one in ["applied", "unchanged", "refused"] {
        counter!(RELOADS, "outcome" => one).increment(u64::from(outcome == Some(one)));
    }
    gauge!(RELOADED).set(f64::from(u8::from(outcome != Some("refused"))));
}

/// The configuration with this digest is in force from now on.
pub fn in_force(digest: u64) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    gauge!(RELOADED_AT).set(now.as_secs() as f64);
    // A number of a metric holds 53 bits.
    gauge!(HASH).set((digest >> 16) as f64);
}
