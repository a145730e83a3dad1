//! The `Mcp-*` headers of modern HTTP: made from a frame, and checked against a frame.

use super::json;
use super::method::Method;
use super::object::{Key, Object};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};
use std::borrow::Cow;

/// Names the method that the body holds.
pub const MCP_METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// Names the tool, prompt or resource that the body names.
pub const MCP_NAME: HeaderName = HeaderName::from_static("mcp-name");
/// Names the session of a legacy client.
pub const MCP_SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// Names the revision.
pub const MCP_PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// What a resumed stream was last given.
pub const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// How the headers of tool arguments begin.
pub const PARAM_PREFIX: &str = "mcp-param-";

const OPEN: &str = "=?base64?";
const CLOSE: &str = "?=";

/// A text as a header value: as it is where it is plain, else in the Base64 sentinel.
pub fn encode(text: &str) -> HeaderValue {
    let plain = text.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
    let trimmed = text.trim_matches([' ', '\t']).len() == text.len();
    let look_alike = text.starts_with(OPEN) && text.ends_with(CLOSE);
    let value = if plain && trimmed && !look_alike {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("{OPEN}{}{CLOSE}", STANDARD.encode(text)))
    };
    HeaderValue::from_str(&value).expect("visible ASCII, spaces and tabs are legal in a header")
}

/// A method as a header value.
pub fn method(method: &Method) -> HeaderValue {
    match method {
        Method::Other(text) => encode(text),
        known => HeaderValue::from_static(known.label()),
    }
}

/// The text of a header value; `None` where its Base64 is broken or it holds bytes that are no text.
pub fn decode(value: &HeaderValue) -> Option<String> {
    let text = value.to_str().ok()?;
    match text.strip_prefix(OPEN).and_then(|rest| rest.strip_suffix(CLOSE)) {
        Some(coded) => String::from_utf8(STANDARD.decode(coded).ok()?).ok(),
        None => Some(text.to_owned()),
    }
}

/// What `Mcp-Name` must say for a request; `None` where the method has none.
pub fn name_of<'a>(method: &Method, params: &'a Object) -> Option<Cow<'a, str>> {
    match method {
        Method::ToolsCall | Method::PromptsGet => params.text(Key::Name),
        Method::ResourcesRead => params.text(Key::Uri),
        Method::TasksGet | Method::TasksUpdate | Method::TasksCancel => params.find("taskId").and_then(json::unquote),
        _ => None,
    }
}

/// Whether headers and body of a modern request agree; the text says where they do not.
pub fn check(headers: &HeaderMap, method: &Method, params: &Object, revision: &str) -> Result<(), String> {
    let name = name_of(method, params);
    let mut told = [
        (MCP_PROTOCOL_VERSION, Some(revision), Told::Never),
        (MCP_METHOD, Some(method.as_str()), Told::Never),
        (MCP_NAME, name.as_deref(), Told::Never),
    ];
    // One walk over the few headers there are costs less than three look-ups.
    for (name, value) in headers {
        if let Some((.., seen)) = told.iter_mut().find(|(known, ..)| known == name) {
            *seen = if let Told::Never = seen { Told::Once(value) } else { Told::Twice };
        }
    }
    told.iter().try_for_each(|(name, expected, seen)| match expected {
        Some(expected) => agree(name, seen, expected),
        None => Ok(()),
    })
}

/// How often a header stands in a request.
enum Told<'a> {
    Never,
    Once(&'a HeaderValue),
    Twice,
}

fn agree(name: &HeaderName, told: &Told<'_>, expected: &str) -> Result<(), String> {
    let value = match told {
        Told::Never => return Err(format!("the header `{name}` is missing")),
        Told::Once(value) => value,
        Told::Twice => return Err(format!("the header `{name}` stands twice")),
    };
    // The plain case first, without a copy. A text that looks like the sentinel is never its own header.
    if value.as_bytes() == expected.as_bytes() && !expected.starts_with(OPEN) {
        return Ok(());
    }
    match decode(value) {
        Some(text) if text == expected => Ok(()),
        Some(_) => Err(format!("the header `{name}` and the body disagree")),
        None => Err(format!("the header `{name}` cannot be decoded")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_text_survives(text in any::<String>()) {
            prop_assert_eq!(decode(&encode(&text)), Some(text));
        }
    }

    #[test]
    fn the_sentinel_is_exact() {
        assert_eq!(encode("ä"), "=?base64?w6Q=?=");
        assert_eq!(encode("=?base64?x?="), "=?base64?PT9iYXNlNjQ/eD89?=");
        assert_eq!(decode(&HeaderValue::from_static("=?BASE64?w6Q=?=")).as_deref(), Some("=?BASE64?w6Q=?="));
        assert_eq!(decode(&HeaderValue::from_static("=?base64?w6Q?=")), None);
        assert_eq!(decode(&HeaderValue::from_static("=?base64?w6Q=")).as_deref(), Some("=?base64?w6Q="));
    }

    #[test]
    fn headers_and_body_must_agree() {
        let params = Object::parse(Bytes::from_static(br#"{"name":"e\u00e4"}"#)).unwrap();
        let mut headers = HeaderMap::new();
        let judge = |headers: &HeaderMap| check(headers, &Method::ToolsCall, &params, "2026-07-28");
        assert!(judge(&headers).unwrap_err().contains("missing"));
        headers.insert(MCP_PROTOCOL_VERSION, HeaderValue::from_static("2026-07-28"));
        headers.insert(MCP_METHOD, HeaderValue::from_static("tools/call"));
        assert!(judge(&headers).unwrap_err().contains("mcp-name"));
        headers.insert(MCP_NAME, encode("eä"));
        assert_eq!(judge(&headers), Ok(()));
        headers.append(MCP_NAME, encode("eä"));
        assert!(judge(&headers).unwrap_err().contains("twice"));
        headers.insert(MCP_METHOD, HeaderValue::from_static("Tools/call"));
        assert!(judge(&headers).unwrap_err().contains("disagree"));
    }
}
