//! Speaks to stateless upstreams: `server/discover`, and what its answer says of the era.

use super::fault::Fault;
use super::handshake::{offer, says_too_much, unsupported};
use super::profile::Offer;
use crate::protocol::frame::Method;
use crate::protocol::frame::message::Body;
use crate::protocol::frame::rpc_error::{HEADER_MISMATCH, MISSING_CAPABILITY, RpcError, UNSUPPORTED_REVISION};
use crate::protocol::json;
use crate::protocol::revision::{Era, Revision};
use crate::protocol::value::Object;
use crate::transport::exchange::{Lost, Request};
use crate::transport::identity;
use crate::transport::identity::NO_CAPABILITIES;
use crate::transport::link::{Exchange, Link};

/// What an answer to `server/discover` says.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// It is stateless, and offers this.
    Modern(Box<Offer>),
    /// It shakes hands.
    Legacy,
    /// It is stateless, but of no revision that we speak.
    Foreign(Fault),
    /// The answer says nothing of the era.
    Nothing(Fault),
}

/// Asks what the upstream offers, as a stateless client asks.
pub(crate) fn discover(link: &Link) -> Result<Exchange, Lost> {
    let envelope = identity::envelope(Revision::NEWEST_MODERN, NO_CAPABILITIES, None);
    link.exchange(&Request::new(&Method::Discover, &Object::empty(), Some(envelope)))
}

/// What the answer says. Only a real answer of a stateless upstream makes it one; a refusal of any kind means a handshake,
/// and an HTTP status that speaks of credentials or an outage says nothing.
pub(crate) fn read_discover(answer: &Result<Body, Lost>) -> Verdict {
    match answer {
        Ok(Body::Result(result)) => match result.find("supportedVersions") {
            Some(dates) => match says_too_much(result, &Method::Discover) {
                Some(fault) => Verdict::Foreign(fault),
                None => among(dates, |revision| offer(result, revision)),
            },
            None => Verdict::Legacy,
        },
        Ok(Body::Error(raw)) => {
            let error = RpcError::from_raw(raw.clone());
            match error.code() {
                Some(UNSUPPORTED_REVISION) => match error.data().and_then(|data| json::get(data, "supported")) {
                    Some(dates) => among(dates, undiscovered),
                    None => Verdict::Modern(Box::new(undiscovered(Revision::NEWEST_MODERN))),
                },
                Some(HEADER_MISMATCH | MISSING_CAPABILITY) => {
                    Verdict::Modern(Box::new(undiscovered(Revision::NEWEST_MODERN)))
                }
                _ => Verdict::Legacy,
            }
        }
        Ok(_) => Verdict::Legacy,
        Err(lost @ Lost::Status(refusal)) if refusal.class().says_nothing() => Verdict::Nothing(Fault::from(lost)),
        Err(Lost::Status(_)) => Verdict::Legacy,
        // Two hundred and a body that is no answer is a refusal too; a connection that broke is not.
        Err(Lost::Odd(_) | Lost::Session(_)) => Verdict::Legacy,
        Err(lost) => Verdict::Nothing(lost.into()),
    }
}

/// The newest revision that both speak.
fn among(dates: &[u8], modern: impl FnOnce(Revision) -> Offer) -> Verdict {
    let places = json::elements(dates).unwrap_or_default();
    let texts: Vec<_> = places.into_iter().filter_map(|place| json::unquote(&dates[place])).collect();
    let common = texts.iter().filter_map(|date| Revision::parse(date)).max();
    match common.map(|revision| (revision, revision.era())) {
        Some((revision, Era::Modern)) => Verdict::Modern(Box::new(modern(revision))),
        Some((_, Era::Legacy)) => Verdict::Legacy,
        None if texts.is_empty() => Verdict::Legacy,
        None => Verdict::Foreign(unsupported(&texts.join(", "))),
    }
}

/// What is assumed of a stateless upstream that would not be discovered: everything; what is missing answers for itself.
fn undiscovered(revision: Revision) -> Offer {
    let all = r#"{"tools":{},"resources":{"subscribe":true},"prompts":{},"completions":{},"logging":{}}"#;
    let assumed = Object::parse(format!("{{\"capabilities\":{all}}}").into()).unwrap_or_default();
    offer(&assumed, revision)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::http::HttpStatusError;
    use bytes::Bytes;

    fn result(text: &str) -> Result<Body, Lost> {
        Ok(Body::Result(Object::parse(Bytes::copy_from_slice(text.as_bytes())).unwrap()))
    }

    fn error(code: i64, data: Option<&str>) -> Result<Body, Lost> {
        Ok(Body::Error(RpcError::new(code, "no", data).raw().clone()))
    }

    fn status(status: u16) -> Result<Body, Lost> {
        Err(Lost::Status(HttpStatusError { status, text: "no".into(), retry_after: None }))
    }

    #[test]
    fn the_ladder_as_a_table() {
        let word = |answer: &Result<Body, Lost>| match read_discover(answer) {
            Verdict::Modern(_) => "modern",
            Verdict::Legacy => "legacy",
            Verdict::Foreign(_) => "foreign",
            Verdict::Nothing(_) => "nothing",
        };
        for (answer, expected) in [
            (result(r#"{"supportedVersions":["2026-07-28"],"capabilities":{}}"#), "modern"),
            (result(r#"{"supportedVersions":["2025-11-25","2027-01-01","2026-07-28"]}"#), "modern"),
            (result(r#"{"supportedVersions":["2025-11-25","2025-06-18"]}"#), "legacy"),
            (result(r#"{"supportedVersions":["2027-01-01"]}"#), "foreign"),
            (result(r#"{"supportedVersions":[]}"#), "legacy"),
            (result("{}"), "legacy"),
            (Ok(Body::Odd("null".into())), "legacy"),
            (Ok(Body::Neither), "legacy"),
            (error(-32601, None), "legacy"),
            (error(-32602, None), "legacy"),
            (error(-32000, None), "legacy"),
            (error(-32022, Some(r#"{"supported":["2026-07-28"]}"#)), "modern"),
            (error(-32022, Some(r#"{"supported":["2025-11-25"]}"#)), "legacy"),
            (error(-32022, Some(r#"{"supported":["2031-01-01"]}"#)), "foreign"),
            (error(-32022, None), "modern"),
            (error(-32020, None), "modern"),
            (error(-32021, None), "modern"),
            (status(400), "legacy"),
            (status(404), "legacy"),
            (status(405), "legacy"),
            (status(406), "legacy"),
            (status(415), "legacy"),
            (status(401), "nothing"),
            (status(403), "nothing"),
            (status(429), "nothing"),
            (status(500), "nothing"),
            (status(503), "nothing"),
            (Err(Lost::Unsent("refused".into())), "nothing"),
            (Err(Lost::Unknown("reset".into())), "nothing"),
        ] {
            assert_eq!(word(&answer), expected, "{answer:?}");
        }
    }
}
