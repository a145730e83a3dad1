//! What we say of ourselves to upstreams: never a client's name, and no capability that nobody has.

use crate::call::LogLevel;
use crate::protocol::meta;
use crate::protocol::meta::Envelope;
use crate::protocol::revision::Revision;
use std::sync::LazyLock;

/// Our own name and version, raw.
pub(crate) const IDENTITY: &str = concat!("{\"name\":\"trunkline\",\"version\":\"", env!("CARGO_PKG_VERSION"), "\"}");
/// What we declare on behalf of a caller that declared nothing that can be passed.
pub(crate) const NO_CAPABILITIES: &[u8] = b"{}";

/// What a stateless upstream is told in every message.
pub(crate) fn envelope(revision: Revision, capabilities: &[u8], level: Option<LogLevel>) -> Envelope<'_> {
    Envelope { revision, capabilities, client: IDENTITY.as_bytes(), log_level: level.map(quoted) }
}

/// The `_meta` of a message that says no more than every message of the newest revision does: written once.
pub(crate) fn plain(envelope: Envelope<'_>) -> Option<&'static [u8]> {
    static PLAIN: LazyLock<Vec<u8>> =
        LazyLock::new(|| meta::write(Some(self::envelope(Revision::NEWEST_MODERN, NO_CAPABILITIES, None)), None, b""));
    let Envelope { revision, capabilities, client, log_level } = envelope;
    let is_plain = revision == Revision::NEWEST_MODERN && capabilities == NO_CAPABILITIES && log_level.is_none();
    (is_plain && client == IDENTITY.as_bytes()).then(|| &**PLAIN)
}

/// A level as a raw JSON string.
fn quoted(level: LogLevel) -> &'static [u8] {
    match level {
        LogLevel::Debug => b"\"debug\"",
        LogLevel::Info => b"\"info\"",
        LogLevel::Notice => b"\"notice\"",
        LogLevel::Warning => b"\"warning\"",
        LogLevel::Error => b"\"error\"",
        LogLevel::Critical => b"\"critical\"",
        LogLevel::Alert => b"\"alert\"",
        LogLevel::Emergency => b"\"emergency\"",
    }
}
