//! Speaks to handshake upstreams: `initialize`, and what their questions are answered with.

use super::fault::{Fault, in_short, refused};
use super::profile::Offer;
use crate::health::{Cause, CauseCode};
use crate::protocol::capabilities::Supports;
use crate::protocol::capabilities::beyond::Declared;
use crate::protocol::frame::message::Body;
use crate::protocol::frame::rpc_error::RpcError;
use crate::protocol::frame::{Method, rpc_error};
use crate::protocol::json;
use crate::protocol::revision::{Revision, dialect_2024_10_07};
use crate::protocol::value::Object;
use crate::runtime::aside;
use crate::secrets::mask::{self, Kept};
use crate::transport::exchange::{Lost, Request};
use crate::transport::identity::IDENTITY;
use crate::transport::link::{Exchange, Link};
use crate::transport::questions::Answer;

/// An upstream that says more of itself is not taken: its words are kept for as long as it runs.
const SAYS_MAX: usize = 1 << 20;

/// Asks for the handshake, with the newest revision that has one; declares what the upstream may ask.
pub fn initialize(link: &Link, declares: &Declared) -> Result<Exchange, Lost> {
    let newest = Revision::NEWEST_LEGACY;
    let capabilities = declares.to_json(newest);
    let params =
        format!("{{\"protocolVersion\":\"{newest}\",\"capabilities\":{capabilities},\"clientInfo\":{IDENTITY}}}");
    let params = Object::parse(params.into()).unwrap_or_default();
    link.exchange(&Request::new(&Method::Initialize, &params, None))
}

/// What the answer to the handshake says.
pub fn read_initialize(answer: &Result<Body, Lost>) -> Result<Offer, Fault> {
    let result = match answer {
        Ok(Body::Result(result)) => result,
        Ok(Body::Error(raw)) => {
            let error = RpcError::from_raw(raw.clone());
            return Err(Fault::passing(
                Cause::new(CauseCode::HandshakeRefused, "it refused `initialize` with ").then(&refused(&error)),
            ));
        }
        Ok(_) => return Err(invalid("it answered `initialize` without a result object")),
        Err(lost) => return Err(lost.into()),
    };
    if let Some(fault) = says_too_much(result, &Method::Initialize) {
        return Err(fault);
    }
    let Some(date) = result.find("protocolVersion").and_then(json::unquote) else {
        return Err(invalid("it answered `initialize` without a `protocolVersion`"));
    };
    let revision = match Revision::parse(&date).or_else(|| dialect_2024_10_07::of(&date)) {
        Some(revision) if !revision.is_modern() => revision,
        Some(revision) => {
            let said = format!("it answered `initialize` with revision {revision}, which has no handshake");
            return Err(invalid(said));
        }
        None => return Err(unsupported(&date)),
    };
    Ok(Offer { is_dialect: dialect_2024_10_07::of(&date).is_some(), ..offer(result, revision) })
}

fn invalid(why: impl Into<String>) -> Fault {
    Fault::passing(Cause::new(CauseCode::HandshakeInvalid, why))
}

/// An upstream that speaks none of our revisions. Without its words the sentence has no gap.
pub(crate) fn unsupported(theirs: &str) -> Fault {
    let said = Cause::new(CauseCode::RevisionUnsupported, "it speaks a revision that is not supported here")
        .foreign(&format!(" ({})", in_short(theirs)));
    Fault::hopeless(said.own(&format!("; supported are {}", Revision::in_words())))
}

/// What is wrong with an answer that is too large to be kept.
pub(crate) fn says_too_much(result: &Object, method: &Method) -> Option<Fault> {
    let (method, mib) = (method.as_str(), SAYS_MAX >> 20);
    let why = || format!("it answered `{method}` with more than {mib} MiB");
    let fault = || Fault::hopeless(Cause::new(CauseCode::HandshakeInvalid, why()));
    (result.raw().len() > SAYS_MAX).then(fault)
}

/// What an upstream says of itself, in the answer to `initialize` as to `server/discover`; secrets of ours are masked in it.
pub fn offer(result: &Object, revision: Revision) -> Offer {
    let share = |key: &str| {
        let raw = result.find(key)?;
        Some(
            aside(mask::cost(raw.len()), || mask::masked_json(raw, Kept::Names))
                .unwrap_or_else(|| result.raw().slice_ref(raw)),
        )
    };
    let capabilities = share("capabilities").and_then(|raw| Object::parse(raw).ok()).unwrap_or_default();
    let instructions = share("instructions").filter(|raw| raw.starts_with(b"\""));
    let supports = Supports::of(&capabilities, revision);
    Offer { revision, names_revision: true, capabilities, instructions, supports, is_dialect: false }
}

/// Ends the handshake; what follows comes after it.
pub async fn initialized(link: &Link) -> Result<(), Lost> {
    link.tell(&Request::new(&Method::Initialized, &Object::empty(), None)).await
}

/// What a request of the upstream that asks nobody is answered with, at once.
pub fn answer(method: &Method) -> Answer {
    let refuse = |code, message: &str| Answer::Error(RpcError::new(code, message, None).raw().clone());
    match method {
        Method::Ping => Answer::Result(bytes::Bytes::from_static(b"{}")),
        _ => refuse(rpc_error::METHOD_NOT_FOUND, "the method is not known to this client"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(result: &str) -> Result<Offer, Fault> {
        read_initialize(&Ok(Body::Result(Object::parse(bytes::Bytes::copy_from_slice(result.as_bytes())).unwrap())))
    }

    #[test]
    fn every_published_handshake_revision_is_taken_and_no_other() {
        for revision in Revision::ALL {
            let seen = read(&format!(
                r#"{{"protocolVersion":"{revision}","capabilities":{{"tools":{{}}}},"instructions":"x"}}"#
            ));
            assert_eq!(seen.is_ok(), !revision.is_modern(), "{revision}");
            if let Ok(offer) = seen {
                assert_eq!(
                    (offer.revision, offer.supports.tools, offer.instructions.as_deref()),
                    (revision, true, Some(&b"\"x\""[..]))
                );
            }
        }
        let dialect = read(r#"{"protocolVersion":"2024-10-07","capabilities":{}}"#).unwrap();
        assert_eq!((dialect.revision, dialect.is_dialect), (Revision::V2024_11_05, true));
        let unknown = read(r#"{"protocolVersion":"2024-09-01"}"#).unwrap_err().text;
        assert!(unknown.full().contains(" (2024-09-01); "), "{unknown:?}");
        let public = "it speaks a revision that is not supported here; supported are 2026-07-28, 2025-11-25, ";
        assert!(unknown.public().starts_with(public), "{unknown:?}");
        assert!(read(r#"{"capabilities":{}}"#).is_err());
    }

    #[test]
    fn an_upstream_that_says_too_much_of_itself_is_not_taken() {
        let says = |bytes: usize| {
            read(&format!(r#"{{"protocolVersion":"2025-11-25","instructions":"{}"}}"#, "x".repeat(bytes)))
        };
        assert!(says(SAYS_MAX / 2).is_ok());
        assert_eq!(says(SAYS_MAX).unwrap_err().text.full(), "it answered `initialize` with more than 1 MiB");
    }
}
