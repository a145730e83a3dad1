//! What the headers of a request say, found in one walk: each look-up in the map costs as much as several steps of it.

use crate::health::chain;
use crate::protocol::http::headers;
use crate::protocol::http::headers::{Mcp, Told};
use crate::protocol::meta::trace::{self, Carried};
use http::header::ACCEPT;
use http::{HeaderMap, HeaderName, HeaderValue};

/// The headers of a request, as far as they say something here.
#[derive(Debug)]
pub(crate) struct Heads<'a> {
    map: &'a HeaderMap,
    /// What the body must agree with.
    pub(crate) mcp: Mcp<'a>,
    content_type: Told<'a>,
    content_length: Option<&'a HeaderValue>,
    /// Whether the body is said to be compressed, or encoded in another way.
    pub(crate) is_encoded: bool,
    session: Told<'a>,
    last_event: Told<'a>,
    /// Whether the client says that it reads streams; `None` where it says nothing of what it reads.
    takes_streams: Option<bool>,
    /// Whether a gateway asks.
    pub(crate) is_of_gateway: bool,
    has_params: bool,
    is_traced: bool,
}

impl<'a> Heads<'a> {
    /// What these headers say.
    pub(crate) fn of(map: &'a HeaderMap) -> Self {
        let mut heads = Self {
            map,
            mcp: Mcp::default(),
            content_type: Told::default(),
            content_length: None,
            is_encoded: false,
            session: Told::default(),
            last_event: Told::default(),
            takes_streams: None,
            is_of_gateway: false,
            has_params: false,
            is_traced: false,
        };
        map.iter().for_each(|(name, value)| heads.note(name, value));
        heads
    }

    fn note(&mut self, name: &HeaderName, value: &'a HeaderValue) {
        match name.as_str() {
            "content-type" => self.content_type.note(value),
            "content-length" => _ = self.content_length.get_or_insert(value),
            "content-encoding" => self.is_encoded |= !is_identity(value),
            "accept" => self.takes_streams = Some(self.takes_streams == Some(true) || names_streams(value)),
            "mcp-protocol-version" => self.mcp.version.note(value),
            "mcp-session-id" => self.session.note(value),
            "last-event-id" => self.last_event.note(value),
            "mcp-method" => self.mcp.method.note(value),
            "mcp-name" => self.mcp.name.note(value),
            name if name == chain::VIA => self.is_of_gateway = true,
            name if trace::is_key(name.as_bytes()) => self.is_traced = true,
            name => self.has_params |= name.starts_with(headers::PARAM_PREFIX),
        }
    }

    /// What `MCP-Protocol-Version` says.
    pub(crate) fn version(&self) -> Option<&'a str> {
        self.mcp.version.first().map(|value| value.to_str().unwrap_or("unreadable"))
    }

    /// Whether the client reads streams; one that does not say so is taken to.
    pub(crate) fn takes_streams(&self) -> bool {
        self.takes_streams.unwrap_or(true)
    }

    /// Whether `Accept` names event streams as such; looked for anew, since only a GET asks.
    pub(crate) fn names_events(&self) -> bool {
        let kinds =
            self.map.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(','));
        let mut names = kinds.map(|kind| kind.split(';').next().unwrap_or_default().trim());
        names.any(|name| name.eq_ignore_ascii_case("text/event-stream"))
    }

    /// Whether the body is said to be JSON, once.
    pub(crate) fn is_json(&self) -> bool {
        let Some(value) = self.content_type.only() else { return false };
        // As nearly all say it.
        if value == "application/json" {
            return true;
        }
        let kind = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
        kind.trim_ascii().eq_ignore_ascii_case(b"application/json")
    }

    /// How long the body is, where that is said.
    pub(crate) fn content_length(&self) -> Option<usize> {
        self.content_length?.to_str().ok()?.parse().ok()
    }

    /// The session id that the request names.
    pub(crate) fn named(&self) -> Option<&'a str> {
        self.session.first().map(|value| value.to_str().unwrap_or_default())
    }

    /// What a resumed stream was last given.
    pub(crate) fn last_event(&self) -> Option<&'a HeaderValue> {
        self.last_event.first()
    }

    /// A header that decides something and stands twice: whoever takes the other value sees another request.
    pub(crate) fn doubled(&self) -> Option<HeaderName> {
        let Mcp { version, method, name } = &self.mcp;
        [
            (headers::MCP_PROTOCOL_VERSION, version),
            (headers::MCP_SESSION_ID, &self.session),
            (headers::MCP_METHOD, method),
            (headers::MCP_NAME, name),
            (headers::LAST_EVENT_ID, &self.last_event),
        ]
        .into_iter()
        .find_map(|(header, told)| told.is_twice().then_some(header))
    }

    /// The trace context that the request bears, where there is one.
    pub(crate) fn trace(&self) -> Option<Box<Carried>> {
        self.is_traced.then(|| Box::new(Carried::of_headers(self.map)))
    }

    /// The `Mcp-Param-*` headers.
    pub(crate) fn params(&self) -> Box<[(HeaderName, HeaderValue)]> {
        if !self.has_params {
            return Box::default();
        }
        let params = self.map.iter().filter(|(name, _)| name.as_str().starts_with(headers::PARAM_PREFIX));
        params.map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

/// Whether a `Content-Encoding` says that nothing was done to the body.
fn is_identity(value: &HeaderValue) -> bool {
    let mut codings = value.as_bytes().split(|byte| *byte == b',').map(|coding| coding.trim_ascii());
    codings.all(|coding| coding.is_empty() || coding.eq_ignore_ascii_case(b"identity"))
}

/// Whether an `Accept` names event streams.
fn names_streams(value: &HeaderValue) -> bool {
    // As nearly all say it, in the order of the specification.
    value == "application/json, text/event-stream"
        || value
            .to_str()
            .is_ok_and(|text| ["text/event-stream", "text/*", "*/*"].iter().any(|kind| text.contains(kind)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What one says of these headers.
    fn said<T>(headers: &[(&'static str, &'static str)], ask: impl Fn(&Heads<'_>) -> T) -> T {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_static(value));
        }
        ask(&Heads::of(&map))
    }

    #[test]
    fn a_kind_is_json_where_it_is_said_once() {
        let is_json = |headers: &[_]| said(headers, |heads| heads.is_json());
        assert!(is_json(&[("content-type", "Application/JSON ; charset=utf-8")]));
        assert!(!is_json(&[]) && !is_json(&[("content-type", "text/plain")]));
        assert!(!is_json(&[("content-type", "application/json"), ("content-type", "application/json")]));
    }

    #[test]
    fn a_client_that_does_not_say_what_it_reads_reads_streams() {
        let takes = |headers: &[_]| said(headers, |heads| heads.takes_streams());
        assert!(takes(&[]) && takes(&[("accept", "application/json"), ("accept", "text/event-stream;q=0.1")]));
        assert!(takes(&[("accept", "*/*"), ("accept", "application/json")]) && takes(&[("accept", "a, text/*")]));
        assert!(!takes(&[("accept", "application/json")]));
    }

    #[test]
    fn event_streams_are_named_by_their_name_alone() {
        let names = |headers: &[_]| said(headers, |heads| heads.names_events());
        for accept in ["text/event-stream", "application/json, Text/Event-Stream;q=0.5", "a,text/event-stream ,b"] {
            assert!(names(&[("accept", accept)]) && names(&[("accept", "a/b"), ("accept", accept)]), "{accept}");
        }
        for accept in ["application/json", "*/*", "text/*", "text/event-streams", ""] {
            assert!(!names(&[("accept", accept)]), "{accept}");
        }
        assert!(!names(&[]));
    }

    #[test]
    fn a_header_that_decides_something_and_stands_twice_is_named() {
        let doubled = |headers: &[_]| said(headers, |heads| heads.doubled().map(|name| name.to_string()));
        for name in ["mcp-protocol-version", "mcp-session-id", "mcp-method", "mcp-name", "last-event-id"] {
            assert_eq!(doubled(&[(name, "a"), ("accept", "*/*"), (name, "a")]).as_deref(), Some(name));
            assert_eq!(doubled(&[(name, "a"), ("accept", "a"), ("accept", "b")]), None);
        }
        let twice = [("content-length", "7"), ("content-length", "8")];
        assert_eq!(said(&twice, |heads| heads.content_length()), Some(7));
    }

    #[test]
    fn an_encoded_body_is_known_in_every_spelling() {
        let encoded = |values: &[&'static str]| {
            let headers: Vec<_> = values.iter().map(|value| ("content-encoding", *value)).collect();
            said(&headers, |heads| heads.is_encoded)
        };
        for values in [&["gzip"][..], &["br"], &["GZIP"], &["identity, gzip"], &["gzip", "identity"], &["x-unknown"]] {
            assert!(encoded(values), "{values:?}");
        }
        for values in [&[][..], &["identity"], &["Identity"], &["identity", " identity , identity"], &[""]] {
            assert!(!encoded(values), "{values:?}");
        }
    }

    #[test]
    fn the_headers_of_arguments_and_of_other_gateways_are_seen() {
        let all = [("mcp-param-a", "1"), ("x", "2"), ("mcp-param-b", "3"), ("trunkline-via", "4")];
        assert_eq!(said(&all, |heads| (heads.params().len(), heads.is_of_gateway)), (2, true));
        assert_eq!(said(&all[1..2], |heads| (heads.params().len(), heads.is_of_gateway)), (0, false));
    }
}
