//! Meets what lists and calls tools, each by itself, and knows nothing else of the protocol.

use super::fault::{Fault, refused};
use super::handshake;
use super::profile::{Offer, Peer};
use crate::health::{Cause, CauseCode};
use crate::protocol::frame::Method;
use crate::protocol::frame::message::Body;
use crate::protocol::frame::rpc_error::RpcError;
use crate::protocol::revision::Revision;
use crate::protocol::value::Object;
use crate::transport::exchange::Request;
use crate::transport::link::Link;
use bytes::Bytes;

/// What to do where such an upstream does not say what its tools are.
const ADVICE: &str = "define its tools in `tools.define`";

/// Meets it on a new link. Nothing is said to it but `tools/list`, and not even that where its tools are `defined`.
pub async fn meet(link: &Link, defined: Option<&Bytes>) -> Result<Peer, Fault> {
    let list = defined.and_then(|list| Object::parse(list.clone()).ok());
    let offer = match list {
        Some(_) => offer(),
        None => listed(link).await?,
    };
    Ok(Peer::new(link.clone(), offer).with_tools(list))
}

/// What it offers, where it lists tools.
pub(super) async fn listed(link: &Link) -> Result<Offer, Fault> {
    let asked = link.exchange(&Request::new(&Method::ToolsList, &Object::empty(), None));
    let said = match asked.map_err(|lost| Fault::from(&lost))?.answer().await {
        Ok(Body::Result(result)) if result.find("tools").is_some_and(|tools| tools.starts_with(b"[")) => {
            return Ok(offer());
        }
        Ok(Body::Error(raw)) => {
            let error = RpcError::from_raw(raw);
            Cause::new(CauseCode::HandshakeRefused, "it refused `tools/list` with ").then(&refused(&error))
        }
        Ok(_) => Cause::new(CauseCode::HandshakeInvalid, "it answered `tools/list` without a list of tools"),
        Err(lost) => return Err((&lost).into()),
    };
    Err(Fault::passing(said.advise(ADVICE)))
}

fn offer() -> Offer {
    let said = Object::parse(Bytes::from_static(br#"{"capabilities":{"tools":{}}}"#)).unwrap_or_default();
    Offer { names_revision: false, ..handshake::offer(&said, Revision::NEWEST_LEGACY) }
}
