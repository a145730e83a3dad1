//! What is counted of clients: their connections, how long their sessions last, which programs they are.

use super::labels::OTHER;
use ::metrics::{Gauge, Histogram, Unit, describe_gauge, describe_histogram, gauge, histogram};
use std::collections::HashSet;
use std::sync::{LazyLock, Mutex, PoisonError};

const CONNECTIONS: &str = "trunkline_http_connections";
const LASTED: &str = "trunkline_session_duration_seconds";
const PROGRAMS: &str = "trunkline_client_info";

/// The metrics that [`SESSION_BUCKETS`] belong to.
pub const SESSIONS: [&str; 1] = [LASTED];
/// Bucket borders of sessions, in seconds: up to a week.
pub const SESSION_BUCKETS: [f64; 10] = [1.0, 10.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 43_200.0, 86_400.0, 604_800.0];
/// So many series there are of programs: the numbers of their versions are the clients' to invent.
const PROGRAMS_MAX: usize = 50;
/// What well-known clients call themselves, lower case. All others share a series: a name is the client's to invent.
const PROGRAMS_KNOWN: [&str; 20] = [
    "amp-mcp-client",
    "claude-ai",
    "claude-code",
    "cline",
    "codex-mcp-client",
    "continue-client",
    "copilot-cli",
    "cursor-vscode",
    "gemini-cli-mcp-client",
    "goose",
    "inspector-client",
    "librechat",
    "lm-studio",
    "mcp",
    "mcp-inspector",
    "opencode",
    "roo code",
    "trunkline",
    "visual studio code",
    "zed",
];

/// The name, the first number of the version, and the revision of a client.
type Program = (&'static str, String, &'static str);

/// Says what each of these metrics means.
pub(super) fn describe() {
    describe_gauge!(CONNECTIONS, "Open connections of clients over HTTP, by face");
    describe_histogram!(LASTED, Unit::Seconds, "How long sessions of handshake clients lasted");
    describe_gauge!(PROGRAMS, "Open sessions of handshake clients, by what the client calls itself");
}

/// Something that is there, counted for as long as it is.
#[derive(Debug)]
pub struct Present(Gauge);

impl Present {
    fn of(gauge: Gauge) -> Self {
        gauge.increment(1.0);
        Self(gauge)
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

/// The connections of a face.
pub(super) fn connections(face: &'static str) -> Gauge {
    let gauge = gauge!(CONNECTIONS, "face" => face);
    gauge.increment(0.0);
    gauge
}

/// A connection is open.
pub(super) fn connected(connections: &Gauge) -> Present {
    Present::of(connections.clone())
}

/// How long sessions last.
pub fn lasted() -> Histogram {
    histogram!(LASTED)
}

/// A session of a client that calls itself so, by name and version, is open.
pub fn program(client: &str, revision: &'static str) -> Present {
    static KNOWN: LazyLock<Mutex<HashSet<Program>>> = LazyLock::new(Mutex::default);
    let (name, version) = parts(client);
    let key = (name, version, revision);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let is_known = known.contains(&key) || (known.len() < PROGRAMS_MAX && known.insert(key.clone()));
    drop(known);
    let (name, version) = if is_known { (key.0, key.1) } else { (OTHER, String::new()) };
    Present::of(gauge!(PROGRAMS, "client" => name, "version_major" => version, "protocol_version" => revision))
}

/// The name of a well-known client, and the first number of its version: each release has another one.
fn parts(client: &str) -> (&'static str, String) {
    let is_version = |text: &&str| text.trim_start_matches('v').starts_with(|sign: char| sign.is_ascii_digit());
    let split = client.rsplit_once(' ').filter(|(_, version)| is_version(version));
    let (name, version) = split.unwrap_or((client, ""));
    let Some(known) = PROGRAMS_KNOWN.into_iter().find(|known| name.eq_ignore_ascii_case(known)) else {
        return (OTHER, String::new());
    };
    (known, version.trim_start_matches('v').chars().take_while(char::is_ascii_digit).take(4).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_well_known_client_has_its_name_and_the_first_number_of_its_version_and_no_other_has() {
        let parts = |client| {
            let (name, version) = parts(client);
            format!("{name}|{version}")
        };
        assert_eq!(parts("claude-code 2.1.9"), "claude-code|2");
        assert_eq!(parts("Visual Studio Code v1.99.0"), "visual studio code|1");
        assert_eq!([parts("zed"), parts("invented 7.0"), parts("")], ["zed|", "_other|", "_other|"]);
        assert_eq!(parts("zed 123456789.1"), "zed|1234");
    }
}
