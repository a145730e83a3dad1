//! Speaks to handshake upstreams: `initialize`, and what their questions are answered with.

use super::dialect;
use super::fault::Fault;
use super::identity::IDENTITY;
use super::inventory::Supports;
use super::link::{Answer, Exchange, Link, Lost, Request};
use super::peer::Offer;
use crate::protocol::beyond::Declared;
use crate::protocol::error::{self, RpcError};
use crate::protocol::frame::Body;
use crate::protocol::{Method, Object, Revision, json};

/// Asks for the handshake, with the newest revision that has one; declares what the upstream may ask.
pub(crate) fn initialize(link: &Link, declares: &Declared) -> Result<Exchange, Lost> {
    let newest = Revision::NEWEST_LEGACY;
    let capabilities = declares.to_json(newest);
    let params =
        format!("{{\"protocolVersion\":\"{newest}\",\"capabilities\":{capabilities},\"clientInfo\":{IDENTITY}}}");
    let params = Object::parse(params.into()).unwrap_or_default();
    link.exchange(&Request::new(&Method::Initialize, &params, None))
}

/// What the answer to the handshake says.
pub(crate) fn read_initialize(answer: &Result<Body, Lost>) -> Result<Offer, Fault> {
    let result = match answer {
        Ok(Body::Result(result)) => result,
        Ok(Body::Error(raw)) => {
            let error = RpcError::from_raw(raw.clone());
            let (code, message) = (error.code().unwrap_or_default(), error.message().unwrap_or_default());
            return Err(Fault::passing(format!("it refused `initialize` with error {code}: {message}")));
        }
        Ok(_) => return Err(Fault::passing("it answered `initialize` with what is not a result")),
        Err(lost) => return Err(lost.into()),
    };
    let Some(date) = result.find("protocolVersion").and_then(json::unquote) else {
        return Err(Fault::passing("it answered `initialize` without a `protocolVersion`"));
    };
    let revision = match Revision::parse(&date).or_else(|| dialect::of(&date)) {
        Some(revision) if !revision.is_modern() => revision,
        Some(_) => {
            return Err(Fault::passing(format!(
                "it answered `initialize` with revision {date}, which has no handshake"
            )));
        }
        None => {
            let known = Revision::list(None);
            return Err(Fault::hopeless(format!(
                "it speaks revision `{date}` only, which is not spoken here; known are {known}"
            )));
        }
    };
    Ok(Offer { is_dialect: dialect::of(&date).is_some(), ..offer(result, revision) })
}

/// What an upstream says of itself, in the answer to `initialize` as to `server/discover`.
pub(crate) fn offer(result: &Object, revision: Revision) -> Offer {
    let share = |key: &str| result.find(key).map(|raw| result.raw().slice_ref(raw));
    let capabilities = share("capabilities").and_then(|raw| Object::parse(raw).ok()).unwrap_or_default();
    let instructions = share("instructions").filter(|raw| raw.starts_with(b"\""));
    let supports = Supports::of(&capabilities, revision);
    Offer { revision, capabilities, instructions, supports, is_dialect: false }
}

/// Ends the handshake; what follows comes after it.
pub(crate) async fn initialized(link: &Link) -> Result<(), Lost> {
    link.tell(&Request::new(&Method::Initialized, &Object::empty(), None)).await
}

/// What a request of the upstream that asks nobody is answered with, at once.
pub(crate) fn answer(method: &Method) -> Answer {
    let refuse = |code, message: &str| Answer::Error(RpcError::new(code, message, None).raw().clone());
    match method {
        Method::Ping => Answer::Result(bytes::Bytes::from_static(b"{}")),
        _ => refuse(error::METHOD_NOT_FOUND, "the method is not known to this client"),
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
        assert!(read(r#"{"protocolVersion":"2024-09-01"}"#).unwrap_err().text.contains("2024-09-01"));
        assert!(read(r#"{"capabilities":{}}"#).is_err());
    }
}
