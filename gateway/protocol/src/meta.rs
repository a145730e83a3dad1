//! The `_meta` of a request: what belongs to one hop is taken out, everything else goes end to end.

// The trace context among its members, and in headers.
pub mod trace;

use super::json;
use super::json::{Fault, Members};
use super::revision::Revision;
use super::value::spelling::{META_KEYS, RELATED_TASK, Spots};
use super::value::{Key, Object};
use bytes::Bytes;

/// The protocol's own prefix of `_meta` keys.
pub const PREFIX: &str = "io.modelcontextprotocol/";
/// A result's `_meta` key that names who answered.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The `_meta` key that ties a message to its listen call.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// A request's `_meta`, read once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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
    /// Every other member, as `"key":value` joined by commas: passed on as it is. What names a task stands first: see
    /// [`related`].
    pub rest: Bytes,
    /// Whether a trace context is among those.
    pub is_traced: bool,
    /// The trace context of the transport that brought the message, where that has one.
    pub ambient: Option<Box<trace::Carried>>,
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
    /// The `_meta` of a request, of which this was noted when it was read; empty where there is none.
    pub fn of(params: &Object, noted: &Spots) -> Result<Self, Fault> {
        match (params.in_meta(noted), params.share(Key::Meta)) {
            (Some(members), _) => Ok(Self::noted(members)),
            (None, Some(raw)) => Self::parse(&raw),
            (None, None) => Ok(Self::default()),
        }
    }

    /// What the walk of the parameters has noted, where that is all there is: no second walk.
    fn noted(
        [progress_token, _, revision, capabilities, client, log_level, ..]: [Option<Bytes>; META_KEYS.len()],
    ) -> Self {
        Self { revision, capabilities, client, log_level, progress_token, ..Self::default() }
    }

    /// Reads the raw `_meta` object.
    pub fn parse(raw: &Bytes) -> Result<Self, Fault> {
        let mut meta = Self::default();
        let mut rest = Vec::new();
        let mut related = None;
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
                key if key == RELATED_TASK.as_bytes() => related = value(),
                key => {
                    meta.is_traced |= trace::is_key(key);
                    if !rest.is_empty() {
                        rest.push(b',');
                    }
                    rest.extend_from_slice(&raw[member.start..member.end]);
                }
            }
        }
        meta.rest = match related {
            Some(task) => tied(&task, &rest),
            None => rest.into(),
        };
        Ok(meta)
    }

    /// Whether the progress token is a string or an integer, as it must be.
    pub fn token_is_sound(&self) -> bool {
        self.progress_token.as_ref().is_none_or(|token| crate::frame::message::Id::from_raw(token.clone()).is_some())
    }
}

/// Members of `_meta` with the one that names a task before them.
pub fn tied(task: &[u8], rest: &[u8]) -> Bytes {
    let comma: &[u8] = if rest.is_empty() { b"" } else { b"," };
    [b"\"", RELATED_TASK.as_bytes(), b"\":", task, comma, rest].concat().into()
}

/// What names a task in the members that go end to end, raw, and the members behind it.
pub fn related(rest: &Bytes) -> Option<(Bytes, Bytes)> {
    let key = rest.strip_prefix(b"\"")?.strip_prefix(RELATED_TASK.as_bytes())?.strip_prefix(b"\":")?;
    let start = rest.len() - key.len();
    let end = json::value(rest, start).ok()?;
    Some((rest.slice(start..end), rest.slice(rest.len().min(end + 1)..)))
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
    fn what_the_walk_of_the_object_has_noted_is_what_a_walk_of_its_own_finds() {
        const P: &str = PREFIX;
        let related = format!("\"{RELATED_TASK}\":{{\"taskId\":\"t\"}}");
        for meta in [
            "{}".to_owned(),
            format!("{{\"{P}protocolVersion\":\"2026-07-28\",\"{P}clientCapabilities\":{{\"roots\":{{}}}}}}"),
            format!("{{\"progressToken\" : 7 , \"{P}logLevel\":\"info\",\"{P}clientInfo\":{{}}}}"),
            format!("{{\"{P}subscriptionId\":1,\"{P}serverInfo\":{{}}}}"),
            "{\"progressToken\":7,\"a/b\":[1]}".to_owned(),
            format!("{{{related},\"progressToken\":7}}"),
            format!("{{\"{P}clientInfo\":{{\"name\":\"{}\"}},\"progressToken\":7}}", "x".repeat(70_000)),
        ] {
            let raw = Bytes::from(format!(" {{\"name\":\"x\", \"_meta\": {meta} ,\"arguments\":{{}}}}"));
            let mut noted = Spots::default();
            let (object, _) = Object::walk(&raw, 1, &mut noted).unwrap();
            let own = Meta::parse(&object.share(Key::Meta).unwrap()).unwrap();
            assert_eq!(Meta::of(&object, &noted).unwrap(), own, "{meta}");
            assert_eq!(Meta::of(&object, &Spots::default()).unwrap(), own, "{meta}");
        }
        assert_eq!(Meta::of(&Object::empty(), &Spots::default()).unwrap(), Meta::default());
        let odd = Object::parse(Bytes::from_static(b"{\"_meta\":1}")).unwrap();
        assert!(Meta::of(&odd, &Spots::default()).is_err());
    }

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
        assert_eq!(related(&meta.rest), None);
        let raw = Bytes::from_static(br#"{"a":1,"io.modelcontextprotocol/relate\u0064-task": {"taskId":"x"}}"#);
        let (task, rest) = related(&Meta::parse(&raw).unwrap().rest).unwrap();
        assert_eq!((task, rest), (r#"{"taskId":"x"}"#.into(), r#""a":1"#.into()));
        assert_eq!(related(&tied(b"{}", b"")), Some(("{}".into(), Bytes::new())));
        let envelope =
            Envelope { revision: Revision::V2026_07_28, capabilities: b"{}", client: b"{}", log_level: None };
        let both = Meta::parse(&write(Some(envelope), None, &meta.rest).into()).unwrap();
        assert_eq!((both.revision.as_deref(), both.rest), (Some(&b"\"2026-07-28\""[..]), meta.rest));
    }
}
