//! What a line that is no frame says of who is there.

use crate::secrets::{decoded, mask};

/// So much of a line that is no frame is told on.
const EXCERPT_BYTES: usize = 80;

/// What is told on of such a line, or of a part of it: its beginning, masked.
pub(crate) fn excerpt(text: &[u8]) -> String {
    let begins = decoded(&text[..text.len().min(EXCERPT_BYTES + mask::margin())]);
    mask::masked_and_cut(&begins, EXCERPT_BYTES)
}

/// The scheme of the protocol that answers a line of MCP so: HTTP with a status line, TLS with an alert.
pub(super) fn scheme(answer: &[u8]) -> Option<&'static str> {
    match answer {
        [b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', ..] => Some("http"),
        [0x15, 0x03, 0..=4, ..] => Some("https"),
        _ => None,
    }
}

/// What a line that is no frame says of how the messages are framed, as long as none was understood.
pub(super) fn misframed(line: &[u8]) -> Option<&'static str> {
    const HEADER: &[u8] = b"Content-Length:";
    if line.get(..HEADER.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(HEADER)) {
        return Some("wrong framing: messages have Content-Length headers, as in LSP; MCP wants one message per line");
    }
    (line == b"{" || line == b"[")
        .then_some("wrong framing: a message spans several lines; MCP wants one message per line")
}
