//! What the headers of a request say.

use crate::protocol::headers::{MCP_PROTOCOL_VERSION, MCP_SESSION_ID};
use http::{HeaderMap, header};

/// What `MCP-Protocol-Version` says.
pub(super) fn version(headers: &HeaderMap) -> Option<&str> {
    headers.get(MCP_PROTOCOL_VERSION).map(|value| value.to_str().unwrap_or("unreadable"))
}

/// Whether the client reads streams; one that does not say so is taken to.
pub(super) fn takes_streams(headers: &HeaderMap) -> bool {
    let mut accepted = headers.get_all(header::ACCEPT).iter().peekable();
    accepted.peek().is_none()
        || accepted.any(|value| {
            // As nearly all say it, in the order of the specification.
            value == "application/json, text/event-stream"
                || value
                    .to_str()
                    .is_ok_and(|text| ["text/event-stream", "text/*", "*/*"].iter().any(|kind| text.contains(kind)))
        })
}

/// Whether the body is said to be JSON, once.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return false };
    let kind = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
    kind.trim_ascii().eq_ignore_ascii_case(b"application/json")
}

/// The session id that a request names.
pub(super) fn named(headers: &HeaderMap) -> Option<&str> {
    headers.get(MCP_SESSION_ID).map(|value| value.to_str().unwrap_or_default())
}
