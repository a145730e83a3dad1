//! What a response that says no means for its request: an error of the upstream's own, a lost session, or just no.

use super::body::beside_status;
use super::retry_after;
use crate::health::{Cause, CauseCode};
use crate::metrics::messages;
use crate::protocol::frame::message::{Body, Frame};
use crate::protocol::frame::rpc_error::{METHOD_NOT_FOUND, RpcError};
use crate::secrets::printable;
use crate::secrets::{decoded, mask};
use crate::transport::exchange::Lost;
use crate::transport::http::breaker;
use crate::transport::http::session::HttpSession;
use crate::transport::http::status::{HttpStatusError, StatusClass};
use crate::transport::http::token::LoginAdvice;
use bytes::Bytes;
use http::header::{LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, Response, StatusCode};
use hyper::body::Incoming;
use std::sync::Arc;
use std::time::Duration;

/// How much of a foreign text is told on.
const TEXT_MAX: usize = 300;

/// The code by which some say in a JSON-RPC error that they do not know the session.
const SESSION_UNKNOWN: i64 = -32001;
/// The words by which those who say so in a 400 name it.
const SESSION_WORDS: [&str; 10] = [
    "session id",
    "session-id",
    "session_id",
    "sessionid",
    "session not found",
    "invalid session",
    "unknown session",
    "expired session",
    "session expired",
    "not initialized",
];

/// A response that says no.
#[derive(Debug)]
pub(crate) struct Refused {
    /// Its status, and what it says.
    pub(crate) why: HttpStatusError,
    /// The JSON-RPC error in its body, raw.
    pub(crate) error: Option<Bytes>,
    /// Whether it says that the session is not known that its request named.
    pub(crate) denies_session: bool,
}

/// Reads a refusal of a request; `id` is our id of it, where it has one.
pub(crate) async fn read(response: Response<Incoming>, http: &HttpSession, id: Option<u64>) -> Refused {
    let (head, body) = response.into_parts();
    let pause = wanted_pause(head.status, &head.headers);
    if let Some(pause) = pause {
        // From now on, and not once its words were read.
        breaker::pause(&http.wire, pause, &refused(head.status, &head.headers, &Bytes::new(), None).text);
    }
    let body = beside_status(body, http.inbox.budget()).await.unwrap_or_default();
    let mut refused = judge(head.status, &head.headers, &body, http.has_session().then_some(id));
    if let Some(tokens) = &http.wire.tokens {
        match tokens.explain((head.status, &head.headers), http.is_met(), &http.wire.tasks).await {
            Some(LoginAdvice::Required(text)) => refused.why.text = text,
            Some(LoginAdvice::Hint(advice)) => refused.why.text = refused.why.text.advise_instead(&advice),
            Some(LoginAdvice::MoreScope(advice)) => {
                let more = Cause::new(CauseCode::ScopeRequired, "");
                refused.why.text = refused.why.text.then(&more).advise_instead(&advice);
            }
            None => {}
        }
    }
    refused
}

/// How long whoever has too much to do, or is down, wants to be left alone.
fn wanted_pause(status: StatusCode, headers: &HeaderMap) -> Option<Duration> {
    retry_after::pause(headers).filter(|_| StatusClass::of(status.as_u16()).proves_nothing())
}

/// What a refusal says; `in_session` is our id of the request, where that named a session.
fn judge(status: StatusCode, headers: &HeaderMap, body: &Bytes, in_session: Option<Option<u64>>) -> Refused {
    let (error, of) = match Frame::parse(body) {
        Ok(Frame::Response { body: Body::Error(raw), id }) => {
            messages::UPSTREAM.received();
            (Some(RpcError::from_raw(raw)), id.and_then(|id| id.number()))
        }
        _ => (None, None),
    };
    let why = refused(status, headers, body, error.as_ref());
    let denies_session = in_session.is_some_and(|id| {
        // Whoever answers the very request has read it, and speaks of it.
        let is_answer = error.is_some() && of.is_some() && of == id;
        let code = error.as_ref().and_then(RpcError::code);
        match status {
            StatusCode::NOT_FOUND => code != Some(METHOD_NOT_FOUND) && (!is_answer || code == Some(SESSION_UNKNOWN)),
            StatusCode::BAD_REQUEST => !is_answer && names_session(&words(error.as_ref(), body)),
            _ => false,
        }
    });
    Refused { why, error: error.map(|error| error.raw().clone()), denies_session }
}

/// What a body says, in an error or without one.
fn words(error: Option<&RpcError>, body: &Bytes) -> String {
    error.and_then(RpcError::message).unwrap_or_else(|| decoded(body).into_owned())
}

fn names_session(said: &str) -> bool {
    let said = said.to_ascii_lowercase();
    SESSION_WORDS.iter().any(|word| said.contains(word))
}

/// What a refusal means for the request that it answers. Its session is lost only where another request in it is answered so, too:
/// the refusal of one tool takes the session from nobody.
pub(crate) async fn meaning(refused: Refused, http: &Arc<HttpSession>, is_meeting: bool) -> Result<Body, Lost> {
    if refused.denies_session && !is_meeting && http.is_lost().await {
        return Err(Lost::Session(refused.why.text));
    }
    let class = refused.why.class();
    match refused.error {
        Some(raw) if !(class.is_about_us() || is_meeting && class.says_nothing()) => Ok(Body::Error(raw)),
        _ => Err(Lost::Status(refused.why)),
    }
}

fn refused(status: StatusCode, headers: &HeaderMap, body: &Bytes, error: Option<&RpcError>) -> HttpStatusError {
    let text = describe(status, headers, body, error);
    HttpStatusError::new(status.as_u16(), text, wanted_pause(status, headers))
}

/// The status, what the body says, and what the headers say of credentials.
fn describe(status: StatusCode, headers: &HeaderMap, body: &Bytes, error: Option<&RpcError>) -> Cause {
    let reason = status.canonical_reason().map(|reason| format!(" {reason}")).unwrap_or_default();
    let mut text = Cause::default().own(&format!("HTTP {}{reason}", status.as_u16()));
    let said = words(error, body);
    let said = said.trim();
    // A page for a browser says nothing to anyone here.
    if !said.is_empty() && !said.starts_with('<') {
        text = text.foreign(&format!(": {}", cut(said)));
    }
    for (name, word) in [
        (WWW_AUTHENTICATE.as_str(), "WWW-Authenticate"),
        ("mcp-auth-server", "Mcp-Auth-Server"),
        (LOCATION.as_str(), "Location"),
        (RETRY_AFTER.as_str(), "Retry-After"),
    ] {
        if let Some(value) = headers.get(name) {
            text = text.foreign(&format!(" ({word}: {})", cut(&decoded(value.as_bytes()))));
        }
    }
    text
}

/// A foreign text as the operator is shown it: without secrets, which are masked before it is cut.
pub(crate) fn cut(text: &str) -> String {
    printable(&mask::masked(text).chars().take(TEXT_MAX).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is made of a refusal of our request 7, in a session or without one.
    fn word(status: u16, body: &str, has_session: bool) -> &'static str {
        let (status, body) = (StatusCode::from_u16(status).unwrap(), Bytes::copy_from_slice(body.as_bytes()));
        let refused = judge(status, &HeaderMap::new(), &body, has_session.then_some(Some(7)));
        match refused.error {
            _ if refused.denies_session => "session",
            Some(_) => "error",
            None => "status",
        }
    }

    fn error(id: &str, code: i64, message: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"{message}"}}}}"#)
    }

    #[test]
    fn a_lost_session_is_told_from_a_missing_method_and_a_missing_page() {
        let unknown = error("7", -32601, "Method not found");
        let session = error("null", -32000, "Bad Request: No valid session ID provided");
        for (status, body, has_session, expected) in [
            (404, "", true, "session"),
            (404, &*session, true, "session"),
            (404, &*error("\"server-error\"", -32600, "Session not found"), true, "session"),
            (404, &*error("7", -32001, "Session not found"), true, "session"),
            (404, &*unknown, true, "error"),
            (404, "", false, "status"),
            (404, &*unknown, false, "error"),
            (400, &*session, true, "session"),
            (400, &*error("\"server-error\"", -32600, "Bad Request: Missing session ID"), true, "session"),
            (400, &*error("null", -32000, "Bad Request: Server not initialized"), true, "session"),
            (400, "Invalid Session-Id", true, "session"),
            (400, "<html>", true, "status"),
            (503, "", true, "status"),
        ] {
            assert_eq!(word(status, body, has_session), expected, "{status} {body}");
        }
    }

    #[test]
    fn words_of_a_session_prove_nothing_in_an_answer_to_the_request_or_where_no_session_was_named() {
        let own = error("7", -32602, "unknown key `session id`");
        for status in [400, 404] {
            assert_eq!(word(status, &own, true), "error", "{status}");
            assert_eq!(word(status, &own, false), "error", "{status}");
        }
        assert_eq!(word(400, "Mcp-Session-Id header is required", false), "status");
        assert_eq!(word(400, "your session is not allowed to do this", true), "status");
    }

    #[test]
    fn a_refusal_says_what_the_upstream_said_and_asked_for() {
        let mut headers = HeaderMap::new();
        headers.insert(WWW_AUTHENTICATE, "Bearer realm=\"x\"".parse().unwrap());
        let refused = judge(StatusCode::UNAUTHORIZED, &headers, &Bytes::from_static(b"go away\x1b"), None);
        let said = "HTTP 401 Unauthorized: go away\\u{1b} (WWW-Authenticate: Bearer realm=\"x\")";
        let told = refused.why.text.full();
        assert_eq!(told.split_once("; "), Some((said, "set its credentials in `auth`, or in `headers`")));
        assert_eq!(refused.why.text.own_words(), "HTTP 401 Unauthorized", "the rest is not ours to tell");
        assert_eq!((refused.why.text.number(), refused.why.retry_after), (Some(401), None));
        headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, "7".parse().unwrap());
        for (status, expected) in [(429, Some(7)), (503, Some(7)), (500, Some(7)), (401, None), (302, None)] {
            let status = StatusCode::from_u16(status).unwrap();
            let refusal = judge(status, &headers, &Bytes::new(), None).why;
            assert_eq!(refusal.retry_after, expected.map(Duration::from_secs), "{status}");
            let told = refusal.text.full();
            assert_eq!(
                told.strip_suffix(refusal.text.advice()).map(|said| said.contains("(Retry-After: 7)")),
                Some(true)
            );
        }
    }
}
