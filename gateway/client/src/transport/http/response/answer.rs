//! How one POST is answered: a JSON body, a stream, or a refusal.

use super::body::{beside_status, collect, names_events, one};
use super::sse::Reading;
use super::{refusal, sse};
use crate::health::{Cause, CauseCode};
use crate::protocol::frame::message::{Body, Frame, FrameFault};
use crate::protocol::http::headers;
use crate::secrets::decoded;
use crate::transport::exchange::Lost;
use crate::transport::exchange::mailbox::Mailbox;
use crate::transport::http::breaker;
use crate::transport::http::send::Received;
use crate::transport::http::session::HttpSession;
use crate::transport::http::status::StatusClass;
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::response::Parts;
use http::{HeaderMap, HeaderValue, StatusCode};
use std::cell::OnceCell;
use std::sync::Arc;

/// Kinds of content that are told to everybody.
const KINDS: [&str; 6] =
    ["no content type", "text/html", "text/plain", "application/json", "application/octet-stream", "text/event-stream"];

/// What was asked, as far as its answer is judged by it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    /// Our id of it.
    pub(crate) id: u64,
    /// The epoch of connections.
    pub(crate) epoch: u64,
    /// Whether it asks who the upstream is: then a status says more than a body.
    pub(crate) is_meeting: bool,
    /// Whether it is sent again if a reused connection breaks before the first byte of the answer.
    pub(crate) is_repeatable: bool,
    /// Whether its answer opens a session.
    pub(crate) opens: bool,
    /// Whether it is never answered, but told of what happens.
    pub(crate) listens: bool,
}

/// Reads the answer to a request, and brings all that comes beside it to its slot.
pub(crate) async fn read(
    http: &Arc<HttpSession>,
    received: Received,
    asked: Asked,
    slot: &Arc<Mailbox>,
) -> Result<Body, Lost> {
    let Received { response, mut held, .. } = received;
    slot.keep_room(held.room());
    let class = StatusClass::of_response(response.status());
    if !class.is_some_and(StatusClass::is_failure) {
        http.wire.pulse.beat();
    }
    if asked.opens
        && class.is_none()
        && let Some(id) = response.headers().get(headers::MCP_SESSION_ID)
    {
        http.open_session(id);
    }
    if class.is_some() {
        // What is rare has a box of its own: the future of a plain call stays small.
        let refused = Box::pin(refusal::read(response, http, Some(asked.id))).await;
        // One more session that is refused to a client says nothing of the credentials that all have.
        if http.is_met() || !http.is_of_clients() {
            breaker::denied(&http.wire, &refused.why);
        }
        return Box::pin(refusal::meaning(refused, http, asked.is_meeting)).await;
    }
    breaker::admitted(&http.wire);
    let kind = kind_of(response.headers());
    if kind.is_some_and(names_events) {
        let reading = Reading { http, id: asked.id, epoch: asked.epoch, slot, listens: asked.listens };
        return Box::pin(sse::answer(&reading, response.into_body(), held)).await;
    }
    let promises_nothing = promises_nothing(response.status(), kind);
    let (head, body) = response.into_parts();
    let text = if promises_nothing {
        // A small one may hold an answer all the same.
        let text = Box::pin(beside_status(body, http.inbox.budget())).await;
        text.ok_or_else(|| Lost::Odd(no_answer(&head, &Bytes::new(), None)))?
    } else {
        collect(body, http.wire.max, || slot.budget(http.inbox.budget())).await?
    };
    http.wire.pool.put(held);
    if text.is_empty() {
        return Err(Lost::Odd(invalid(format!("HTTP {} without an answer", head.status.as_u16()))));
    }
    let fault: OnceCell<Cause> = OnceCell::new();
    let beside = |frame| {
        if let Frame::Response { .. } = &frame {
            let _first = fault.set(invalid("the response in it has another id"));
        }
        sse::beside(http, slot, asked.id, frame);
    };
    let found = one(&text, asked.id, &beside, &|odd| _ = fault.set(unread(odd)));
    found.ok_or_else(|| Lost::Odd(no_answer(&head, &text, fault.into_inner())))
}

/// Whether the head of a successful response promises no answer: a request is not accepted with 202, nor answered with a page.
fn promises_nothing(status: StatusCode, kind: Option<&HeaderValue>) -> bool {
    let is_page =
        |kind: &HeaderValue| kind.as_bytes().get(..9).is_some_and(|start| start.eq_ignore_ascii_case(b"text/html"));
    status != StatusCode::OK || kind.is_some_and(is_page)
}

/// The content type; few headers are walked faster than one is looked up.
fn kind_of(headers: &HeaderMap) -> Option<&HeaderValue> {
    headers.iter().find(|(name, _)| **name == CONTENT_TYPE).map(|(_, kind)| kind)
}

fn invalid(why: impl Into<String>) -> Cause {
    Cause::new(CauseCode::ResponseInvalid, why)
}

/// Why a message in a body was not read.
fn unread(odd: &FrameFault) -> Cause {
    let what = if odd.is_json { "a message in it is not valid JSON-RPC" } else { "it is not valid JSON" };
    invalid(what).foreign(&format!(" ({})", refusal::cut(&odd.to_string())))
}

/// What is said of a body without an answer, and why it is none.
fn no_answer(head: &Parts, text: &Bytes, fault: Option<Cause>) -> Cause {
    let kind = head.headers.get(CONTENT_TYPE);
    let kind = kind.map_or("no content type".into(), |kind| decoded(kind.as_bytes()));
    let hint = if kind.starts_with("text/html") { "check the path of its `url`" } else { "" };
    // A kind that everybody knows is no word of the upstream's own.
    let said = invalid(format!("HTTP {} with ", head.status.as_u16()));
    let said = match KINDS.iter().find(|known| kind.starts_with(**known)) {
        Some(known) => said.own(known),
        None => said.own("another content type").foreign(&format!(" ({})", refusal::cut(&kind))),
    };
    let said = said.own(", and no answer to the request in it").advise(hint);
    match flaw(head, text) {
        Some(flaw) => said.own(": ").own(flaw),
        None if kind.starts_with("text/html") => said,
        None => fault.map_or(said.clone(), |fault| said.own(": ").then(&fault)),
    }
}

/// What makes a body unreadable before anything in it is looked at.
fn flaw(head: &Parts, text: &[u8]) -> Option<&'static str> {
    if head.headers.contains_key(CONTENT_ENCODING) || text.starts_with(b"\x1f\x8b") {
        return Some("the body is compressed, which was not asked for");
    }
    if text.starts_with(b"\xef\xbb\xbf") {
        return Some("the body begins with a byte order mark, which JSON must not have");
    }
    std::str::from_utf8(text).is_err().then_some("the body is invalid UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_without_an_answer_is_said_with_what_is_wrong_with_it() {
        let said = |encoding: Option<&str>, text: &'static [u8], fault: Option<&str>| {
            let mut response = http::Response::new(());
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            if let Some(encoding) = encoding {
                response.headers_mut().insert(CONTENT_ENCODING, encoding.parse().unwrap());
            }
            let head = response.into_parts().0;
            no_answer(&head, &Bytes::from_static(text), fault.map(Cause::from)).full().into_owned()
        };
        for (encoding, text, fault, expected) in [
            (Some("gzip"), &b"x"[..], None, ": the body is compressed"),
            (None, b"\x1f\x8b\x08", Some("not JSON"), ": the body is compressed"),
            (None, b"\xef\xbb\xbf{}", Some("not JSON"), ": the body begins with a byte order mark"),
            (None, b"{\"a\":\"\xff\"}", Some("not JSON"), ": the body is invalid UTF-8"),
            (None, b"{}", Some("the response in it has another id"), ": the response in it has another id"),
            (None, b"[[[", Some("it is too deep"), ": it is too deep"),
        ] {
            let said = said(encoding, text, fault);
            assert!(said.starts_with("HTTP 200 with application/json, and no answer to the request in it"), "{said}");
            assert!(said.contains(expected), "{said}");
        }
    }

    #[test]
    fn what_clients_read_of_an_unreadable_body_has_no_gap() {
        let odd = Frame::parse(&Bytes::from_static(br#"{"jsonrpc":"2.0","id":7.0,"result":{}}"#)).unwrap_err();
        let head = http::Response::new(()).into_parts().0;
        let said = no_answer(&head, &Bytes::new(), Some(unread(&odd)));
        let expected =
            "HTTP 200 with no content type, and no answer to the request in it: a message in it is not valid JSON-RPC";
        assert_eq!(said.public(), expected);
        assert!(said.full().contains("`id` must be"), "{said:?}");
    }
}
