//! The handshake of legacy clients: `initialize` answered from what the gateway offers, in the client's revision.

use super::client_era::{invalid, refuse_long};
use super::shared::Edge;
use crate::call::Call;
use crate::call::caller::Caller;
use crate::call::caller::trace::Trace;
use crate::call::refusal::Refusal;
use crate::call::reply::{Outcome, Reply, Source, Step};
use crate::protocol::frame::Method;
use crate::protocol::meta::Meta;
use crate::protocol::revision::Revision;
use crate::protocol::value::Object;
use crate::protocol::{json, translate};
use crate::response::dialect_2024_10_07;
use bytes::Bytes;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

/// So much of what a client calls itself is kept.
const CLIENT_CHARS_MAX: usize = 48;

/// What an `initialize` asks for.
pub(crate) struct Asks {
    /// What we will speak.
    pub(crate) revision: Revision,
    /// Whether the client speaks the dialect of it.
    pub(crate) is_dialect: bool,
    /// What the client can be asked, raw.
    pub(crate) capabilities: Bytes,
    /// Its name and version, for the log; no more than a line can bear.
    pub(crate) client: Box<str>,
}

/// Reads the parameters; refuses those that name no revision, or declare more than is kept.
pub(crate) fn read(params: &Object) -> Result<Asks, Refusal> {
    let asked = params.find("protocolVersion").and_then(json::unquote);
    let asked = asked.ok_or_else(|| invalid("`protocolVersion` must be a string"))?;
    ["capabilities", "clientInfo"].into_iter().try_for_each(|name| refuse_long(name, params.find(name)))?;
    let capabilities = params.find("capabilities").filter(|raw| raw.starts_with(b"{"));
    Ok(Asks {
        revision: dialect_2024_10_07::of(&asked).unwrap_or_else(|| Revision::negotiate(&asked)),
        is_dialect: dialect_2024_10_07::of(&asked).is_some(),
        capabilities: Bytes::copy_from_slice(capabilities.unwrap_or(b"{}")),
        client: client(params.find("clientInfo").unwrap_or(b"{}")),
    })
}

/// What a client calls itself.
fn client(info: &[u8]) -> Box<str> {
    let said = |key| json::get(info, key).and_then(json::unquote).unwrap_or_default();
    let text = format!("{} {}", said("name"), said("version"));
    let text = text.trim();
    text.char_indices().nth(CLIENT_CHARS_MAX).map_or(text, |(at, _)| &text[..at]).into()
}

/// Whether the gateway declares the lists of each kind now: tools, prompts, resources. Where that takes longer to find out: all.
pub(crate) fn lists(edge: &Edge, caller: &Arc<Caller>) -> [bool; 3] {
    let mut reply = edge.call(discover(caller, Meta::default()));
    let cx = &mut Context::from_waker(Waker::noop());
    let Poll::Ready(Step::Done(Outcome::Complete(offer))) = reply.poll_step(cx) else { return [true; 3] };
    let declared = offer.find("capabilities").unwrap_or(b"{}");
    ["tools", "prompts", "resources"].map(|kind| json::get(declared, kind).is_some())
}

/// Answers an `initialize`.
pub(crate) fn answer(edge: &Edge, caller: &Arc<Caller>, meta: Meta) -> Reply {
    let (discover, identity) = (edge.call(discover(caller, meta)), edge.identity.clone());
    Reply::live(Handshake { discover, revision: caller.revision, identity })
}

fn discover(caller: &Arc<Caller>, mut meta: Meta) -> Call {
    Call {
        method: Method::Discover,
        params: Object::empty(),
        trace: Trace::of(&mut meta),
        meta: meta.rest,
        caller: caller.clone(),
        progress: false,
        log_level: None,
        is_notification: false,
        param_headers: None,
        target_name: None,
        public: None,
        bound_to: None,
    }
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
    fn what_a_client_declares_is_bounded() {
        let params = |name: &str, size: usize| {
            let text = format!(r#"{{"protocolVersion":"2025-11-25","{name}":{{"x":"{}"}}}}"#, "a".repeat(size));
            Object::parse(text.into()).unwrap()
        };
        for name in ["capabilities", "clientInfo"] {
            assert!(read(&params(name, 8000)).is_ok());
            let refusal = read(&params(name, 9000)).err().unwrap();
            assert_eq!(refusal.message, format!("`{name}` is longer than 8192 bytes; declare less"));
        }
    }

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
