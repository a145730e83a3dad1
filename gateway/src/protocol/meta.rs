//! The `_meta` of a request: what belongs to one hop is taken out, everything else goes end to end.

use super::json::{self, Fault, Members};
use super::object::{Key, Object};
use super::revision::Revision;
use bytes::Bytes;

/// The protocol's own prefix of `_meta` keys.
pub const PREFIX: &str = "io.modelcontextprotocol/";
/// A result's `_meta` key that names who answered.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The `_meta` key that ties a message to its listen call.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// A request's `_meta`, read once.
#[derive(Debug, Clone, Default)]
pub struct Meta {
    /// `io.modelcontextprotocol/protocolVersion`, raw: its presence makes the request modern.
    pub revision: Option<Bytes>,
    /// `io.modelcontextprotocol/clientCapabilities`, raw.
    pub capabilities: Option<Bytes>,
    /// `io.modelcontextprotocol/clientInfo`, raw.
    pub client: Option<Bytes>,
    /// `io.modelcontextprotocol/logLevel`, raw.
    pub log_level: Option<Bytes>,
    /// `progressToken`, raw.
    pub progress_token: Option<Bytes>,
    /// Every other member, as `"key":value` joined by commas: passed on as it is.
    pub rest: Bytes,
}

/// What we say of ourselves in the `_meta` of a request to a modern upstream.
#[derive(Debug, Clone, Copy)]
pub struct Envelope<'a> {
    /// The revision that is spoken.
    pub revision: Revision,
    /// The capabilities of this very call, raw.
    pub capabilities: &'a [u8],
    /// Our own name and version, raw.
    pub client: &'a [u8],
    /// The level at which the caller wants log messages, raw.
    pub log_level: Option<&'a [u8]>,
}

/// The listen call that a notification says it belongs to, where its id is one of ours.
#[must_use]
pub fn subscription(params: &Object) -> Option<u64> {
    let raw = json::get(params.get(Key::Meta)?, SUBSCRIPTION_ID)?;
    std::str::from_utf8(raw).ok()?.parse().ok()
}

impl Meta {
    /// Reads the raw `_meta` object.
    pub fn parse(raw: &Bytes) -> Result<Self, Fault> {
        let mut meta = Self::default();
        let mut rest = Vec::new();
        for member in Members::of(raw)? {
            let member = member?;
            let value = || Some(raw.slice(member.value..member.end));
            match &*member.key(raw).unwrap_or_default() {
                b"progressToken" => meta.progress_token = value(),
                b"io.modelcontextprotocol/protocolVersion" => meta.revision = value(),
                b"io.modelcontextprotocol/clientCapabilities" => meta.capabilities = value(),
                b"io.modelcontextprotocol/clientInfo" => meta.client = value(),
                b"io.modelcontextprotocol/logLevel" => meta.log_level = value(),
                b"io.modelcontextprotocol/subscriptionId" | b"io.modelcontextprotocol/serverInfo" => {}
                _ => {
                    if !rest.is_empty() {
                        rest.push(b',');
                    }
                    rest.extend_from_slice(&raw[member.start..member.end]);
                }
            }
        }
        meta.rest = rest.into();
        Ok(meta)
    }

    /// Whether the progress token is a string or an integer, as it must be.
    pub fn token_is_sound(&self) -> bool {
        self.progress_token.as_ref().is_none_or(|token| super::frame::Id::from_raw(token.clone()).is_some())
    }
}

/// Writes the `_meta` of a request to an upstream; empty where there is nothing to say.
pub fn write(envelope: Option<Envelope<'_>>, token: Option<&[u8]>, rest: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(rest.len() + if envelope.is_some() { 256 } else { 48 });
    let mut member = |key: &[u8], value: &[u8]| {
        out.extend_from_slice(if out.is_empty() { b"{\"" } else { b",\"" });
        out.extend_from_slice(key);
        out.extend_from_slice(b"\":");
        out.extend_from_slice(value);
    };
    if let Some(envelope) = envelope {
        member(b"io.modelcontextprotocol/protocolVersion", envelope.revision.quoted().as_bytes());
        member(b"io.modelcontextprotocol/clientCapabilities", envelope.capabilities);
        member(b"io.modelcontextprotocol/clientInfo", envelope.client);
        if let Some(level) = envelope.log_level {
            member(b"io.modelcontextprotocol/logLevel", level);
        }
    }
    if let Some(token) = token {
        member(b"progressToken", token);
    }
    if !rest.is_empty() {
        out.push(if out.is_empty() { b'{' } else { b',' });
        out.extend_from_slice(rest);
    }
    if !out.is_empty() {
        out.push(b'}');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hop_members_are_taken_out_and_the_rest_survives() {
        let raw = Bytes::from_static(
            br#"{"a/b": 1.0 ,"progressToken":7,"io.modelcontextprotocol/protocolVersion":"2026-07-28","traceparent":"00-x"}"#,
        );
        let meta = Meta::parse(&raw).unwrap();
        assert_eq!(meta.progress_token.as_deref(), Some(&b"7"[..]));
        assert_eq!(meta.rest, &br#""a/b": 1.0,"traceparent":"00-x""#[..]);
        assert_eq!(write(None, Some(b"9"), &meta.rest), br#"{"progressToken":9,"a/b": 1.0,"traceparent":"00-x"}"#);
        assert_eq!(write(None, None, b""), b"");
        let envelope =
            Envelope { revision: Revision::V2026_07_28, capabilities: b"{}", client: b"{}", log_level: None };
        let both = Meta::parse(&write(Some(envelope), None, &meta.rest).into()).unwrap();
        assert_eq!((both.revision.as_deref(), both.rest), (Some(&b"\"2026-07-28\""[..]), meta.rest));
    }
}
