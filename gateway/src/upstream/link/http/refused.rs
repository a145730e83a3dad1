//! What an HTTP status that says no means: an error of the upstream's own, a lost session, or just no.

use super::super::slot::{HttpRefusal, Lost};
use super::super::stderr::printable;
use super::body::collect;
use super::retry_after;
use super::session::Http;
use crate::protocol::error::{METHOD_NOT_FOUND, RpcError};
use crate::protocol::frame::{Body, Frame};
use bytes::Bytes;
use http::header::{LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, Response, StatusCode};
use hyper::body::Incoming;
use std::sync::Arc;
use std::time::Duration;

/// How much of a refusal's body is looked at.
const BODY_MAX: usize = 64 * 1024;
/// How much of a foreign text is told on.
const TEXT_MAX: usize = 300;

/// What a refusal is.
#[derive(Debug)]
pub(super) enum Refused {
    /// A JSON-RPC error, raw, and the status it came with.
    Error(Bytes, u16),
    /// The session is not known.
    Session(Arc<str>),
    /// Anything else.
    Status(HttpRefusal),
}

impl Refused {
    /// What happened, for a person.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Error(raw, status) => said(raw.clone(), *status),
            Self::Session(text) => text.to_string(),
            Self::Status(refusal) => refusal.text.to_string(),
        }
    }
}

/// Reads a refusal.
pub(super) async fn read(response: Response<Incoming>, http: &Http) -> Refused {
    let (head, body) = response.into_parts();
    let pause = wanted_pause(head.status, &head.headers);
    if let Some(pause) = pause {
        // From now on, and not once its words were read.
        http.wire.pause(pause, &describe(head.status, &head.headers, &Bytes::new(), None));
    }
    let body = collect(body, BODY_MAX).await.unwrap_or_default();
    judge(head.status, &head.headers, &body, http.has_session())
}

/// How long whoever has too much to do, or is down, wants to be left alone.
fn wanted_pause(status: StatusCode, headers: &HeaderMap) -> Option<Duration> {
    let may_ask = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
    retry_after::pause(headers).filter(|_| may_ask)
}

fn judge(status: StatusCode, headers: &HeaderMap, body: &Bytes, has_session: bool) -> Refused {
    let error = match Frame::parse(body) {
        Ok(Frame::Response { body: Body::Error(raw), .. }) => Some(RpcError::from_raw(raw)),
        _ => None,
    };
    let text: Arc<str> = describe(status, headers, body, error.as_ref()).into();
    let said = error
        .as_ref()
        .and_then(RpcError::message)
        .unwrap_or_else(|| String::from_utf8_lossy(body).into_owned())
        .to_ascii_lowercase();
    let is_session_lost = match status {
        StatusCode::NOT_FOUND if has_session => {
            error.as_ref().is_none_or(|error| error.code() != Some(METHOD_NOT_FOUND))
        }
        StatusCode::BAD_REQUEST => said.contains("session") || said.contains("not initialized"),
        _ => false,
    };
    match error {
        _ if is_session_lost => Refused::Session(text),
        Some(error) => Refused::Error(error.raw().clone(), status.as_u16()),
        None => {
            Refused::Status(HttpRefusal { status: status.as_u16(), text, retry_after: wanted_pause(status, headers) })
        }
    }
}

/// Whether a status speaks of credentials or an outage, and so says nothing of who the upstream is.
pub(super) fn says_nothing(status: u16) -> bool {
    matches!(status, 401 | 403 | 407 | 408 | 429 | 500..)
}

/// A JSON-RPC error whose status matters more.
pub(super) fn status_of(raw: Bytes, status: u16) -> Lost {
    plain(status, said(raw, status).into())
}

fn said(raw: Bytes, status: u16) -> String {
    let message = RpcError::from_raw(raw).message().unwrap_or_default();
    format!("HTTP {status}: {}", cut(&message))
}

/// A refusal of which only the status is known.
pub(super) fn plain(status: u16, text: Arc<str>) -> Lost {
    Lost::Status(HttpRefusal { status, text, retry_after: None })
}

/// The status, what the body says, and what the headers say of credentials.
fn describe(status: StatusCode, headers: &HeaderMap, body: &Bytes, error: Option<&RpcError>) -> String {
    let mut text = format!("HTTP {}", status.as_u16());
    if let Some(reason) = status.canonical_reason() {
        text = format!("{text} {reason}");
    }
    let said = error.and_then(RpcError::message).unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
    let said = said.trim();
    // A page for a browser says nothing to anyone here.
    if !said.is_empty() && !said.starts_with('<') {
        text = format!("{text}: {}", cut(said));
    }
    for (name, word) in [
        (WWW_AUTHENTICATE.as_str(), "WWW-Authenticate"),
        ("mcp-auth-server", "Mcp-Auth-Server"),
        (LOCATION.as_str(), "Location"),
        (RETRY_AFTER.as_str(), "Retry-After"),
    ] {
        if let Some(value) = headers.get(name) {
            text = format!("{text} ({word}: {})", cut(&String::from_utf8_lossy(value.as_bytes())));
        }
    }
    text
}

fn cut(text: &str) -> String {
    printable(&text.chars().take(TEXT_MAX).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(status: u16, body: &'static str, has_session: bool) -> &'static str {
        match judge(
            StatusCode::from_u16(status).unwrap(),
            &HeaderMap::new(),
            &Bytes::from_static(body.as_bytes()),
            has_session,
        ) {
            Refused::Error(..) => "error",
            Refused::Session(_) => "session",
            Refused::Status(_) => "status",
        }
    }

    #[test]
    fn a_lost_session_is_told_from_a_missing_method_and_a_missing_page() {
        const UNKNOWN: &str = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}"#;
        const SESSION: &str = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}"#;
        assert_eq!(word(404, "", true), "session");
        assert_eq!(word(404, SESSION, true), "session");
        assert_eq!(word(404, UNKNOWN, true), "error");
        assert_eq!(word(404, "", false), "status");
        assert_eq!(word(404, UNKNOWN, false), "error");
        assert_eq!(word(400, SESSION, true), "session");
        assert_eq!(word(400, "Mcp-Session-Id header is required", false), "session");
        assert_eq!(word(400, "<html>", true), "status");
        assert_eq!(word(503, "", true), "status");
    }

    #[test]
    fn a_refusal_says_what_the_upstream_said_and_asked_for() {
        let mut headers = HeaderMap::new();
        headers.insert(WWW_AUTHENTICATE, "Bearer realm=\"x\"".parse().unwrap());
        match judge(StatusCode::UNAUTHORIZED, &headers, &Bytes::from_static(b"go away\x1b"), false) {
            Refused::Status(refusal) => {
                assert_eq!(
                    &*refusal.text,
                    "HTTP 401 Unauthorized: go away\u{fffd} (WWW-Authenticate: Bearer realm=\"x\")"
                );
                assert_eq!(refusal.retry_after, None);
            }
            other => panic!("{other:?}"),
        }
        headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, "7".parse().unwrap());
        for (status, expected) in [(429, Some(7)), (503, Some(7)), (500, Some(7)), (401, None), (302, None)] {
            let status = StatusCode::from_u16(status).unwrap();
            let Refused::Status(refusal) = judge(status, &headers, &Bytes::new(), false) else { panic!() };
            assert_eq!(refusal.retry_after, expected.map(Duration::from_secs), "{status}");
            assert!(refusal.text.ends_with("(Retry-After: 7)"), "{}", refusal.text);
        }
    }
}
