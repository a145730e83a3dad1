//! The handshake of legacy clients: `initialize` answered from what the gateway offers, in the client's revision.

use super::dialect;
use super::edge::Edge;
use crate::call::{Call, Caller, Outcome, Reply, Source, Step};
use crate::protocol::{Method, Object, Revision, json, translate};
use bytes::Bytes;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// What an `initialize` asks for.
pub(super) struct Asks {
    /// What we will speak.
    pub(super) revision: Revision,
    /// Whether the client speaks the dialect of it.
    pub(super) is_dialect: bool,
    /// What the client can be asked, raw.
    pub(super) capabilities: Bytes,
}

/// Reads the parameters; `None` where they name no revision.
pub(super) fn read(params: &Object) -> Option<Asks> {
    let asked = params.find("protocolVersion").and_then(json::unquote)?;
    let capabilities = params.find("capabilities").filter(|raw| raw.starts_with(b"{"));
    Some(Asks {
        revision: dialect::of(&asked).unwrap_or_else(|| Revision::negotiate(&asked)),
        is_dialect: dialect::of(&asked).is_some(),
        capabilities: Bytes::copy_from_slice(capabilities.unwrap_or(b"{}")),
    })
}

/// Answers an `initialize`.
pub(super) fn answer(edge: &Edge, caller: &Arc<Caller>, meta: Bytes) -> Reply {
    let call = Call {
        method: Method::Discover,
        params: Object::empty(),
        meta,
        caller: caller.clone(),
        progress: false,
        log_level: None,
        is_notification: false,
        param_headers: None,
        public: None,
        bound_to: None,
    };
    let (discover, identity) = (edge.call(call), edge.identity.clone());
    Reply::live(Handshake { discover, revision: caller.revision, identity })
}

struct Handshake {
    discover: Reply,
    revision: Revision,
    /// Our name and version, raw.
    identity: Bytes,
}

impl Source for Handshake {
    fn poll_step(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Step> {
        loop {
            match ready!(self.discover.poll_step(cx)) {
                Step::Done(Outcome::Complete(offer)) => {
                    let result = initialized(&offer, self.revision, &self.identity);
                    return Poll::Ready(Step::Done(Outcome::Complete(result)));
                }
                Step::Done(outcome) => return Poll::Ready(Step::Done(outcome)),
                Step::Event(_) => {}
            }
        }
    }

    fn revision(&self) -> Revision {
        self.revision
    }
}

/// The result of `initialize`, made from the result of `server/discover`.
fn initialized(offer: &Object, revision: Revision, identity: &[u8]) -> Object {
    let mut out = format!("{{\"protocolVersion\":\"{revision}\",\"capabilities\":").into_bytes();
    out.extend_from_slice(&translate::capabilities(offer.find("capabilities").unwrap_or(b"{}"), revision));
    out.extend_from_slice(b",\"serverInfo\":");
    out.extend_from_slice(identity);
    if let Some(instructions) = offer.find("instructions").filter(|raw| raw.starts_with(b"\"")) {
        out.extend_from_slice(b",\"instructions\":");
        out.extend_from_slice(instructions);
    }
    out.push(b'}');
    Object::parse(out.into()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_revision_is_told_what_it_knows() {
        let offer = Object::parse(Bytes::from_static(
            br#"{"capabilities":{"tools":{"listChanged":true},"completions":{},"extensions":{"a/b":{}}},"instructions":"\u0041","ttlMs":0}"#,
        ))
        .unwrap();
        let answer = |revision| initialized(&offer, revision, b"{}").raw().clone();
        assert_eq!(
            answer(Revision::V2024_11_05),
            r#"{"protocolVersion":"2024-11-05","capabilities":{"tools":{"listChanged":true}},"serverInfo":{},"instructions":"\u0041"}"#
        );
        assert_eq!(
            answer(Revision::V2025_03_26),
            r#"{"protocolVersion":"2025-03-26","capabilities":{"tools":{"listChanged":true},"completions":{}},"serverInfo":{},"instructions":"\u0041"}"#
        );
    }
}
