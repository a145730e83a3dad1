//! The `Mcp-*` headers of modern HTTP: made from a frame, and checked against a frame.

use crate::frame::{Decimal, Method};
use crate::json;
use crate::value::{Key, Object};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderName, HeaderValue};
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

/// How many numbers have their digits ready: every request says its length, and a static text takes no memory.
const READY: usize = 4096;

/// The digits of these numbers, four places for each.
static DIGITS: [u8; 4 * READY] = digits();

const fn digits() -> [u8; 4 * READY] {
    let (mut digits, mut at) = ([b'0'; 4 * READY], 0);
    while at < digits.len() {
        let (number, place) = (at / 4, at % 4);
        digits[at] += (number / [1000, 100, 10, 1][place] % 10) as u8;
        at += 1;
    }
    digits
}

fn ready(number: u64) -> Option<&'static str> {
    let number = usize::try_from(number).ok().filter(|number| *number < READY)?;
    let skipped = match number {
        0..10 => 3,
        10..100 => 2,
        100..1000 => 1,
        _ => 0,
    };
    std::str::from_utf8(&DIGITS[4 * number + skipped..4 * (number + 1)]).ok()
}

/// A number as a header value.
pub fn number(number: u64) -> HeaderValue {
    if let Some(digits) = ready(number) {
        return HeaderValue::from_static(digits);
    }
    HeaderValue::from_bytes(Decimal::of(number).as_bytes()).expect("digits make a header value")
}

/// A text as a header value: as it is where it is plain, else in the Base64 sentinel.
pub fn encode(text: &str) -> HeaderValue {
    let value = match is_plain(text) {
        true => Cow::Borrowed(text),
        false => Cow::Owned(format!("{OPEN}{}{CLOSE}", STANDARD.encode(text))),
    };
    HeaderValue::from_str(&value).expect("visible ASCII, spaces and tabs are legal in a header")
}

/// Whether a header can say a text as it is, and nothing else is meant by that.
fn is_plain(text: &str) -> bool {
    let is_shown = text.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
    let is_space = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let is_trimmed = !is_space(text.as_bytes().first()) && !is_space(text.as_bytes().last());
    is_shown && is_trimmed && !(text.starts_with(OPEN) && text.ends_with(CLOSE))
}

/// A method as a header value.
pub fn method(method: &Method) -> HeaderValue {
    const CALL: HeaderValue = HeaderValue::from_static("tools/call");
    match method {
        // By far the most frequent one, judged when this was built.
        Method::ToolsCall => CALL,
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
    params.text(named_by(method)?)
}

/// [`MCP_NAME`] of a request; a plain name shares the memory of its parameters. `target_name` replaces the parameters' `name`.
pub fn name(method: &Method, params: &Object, target_name: Option<&Bytes>) -> Option<HeaderValue> {
    let key = named_by(method)?;
    let raw = match target_name.filter(|_| key == Key::Name) {
        Some(name) => name.clone(),
        None => params.share(key)?,
    };
    match json::unquote(&raw)? {
        Cow::Borrowed(text) if is_plain(text) => HeaderValue::from_maybe_shared(raw.slice(1..raw.len() - 1)).ok(),
        text => Some(encode(&text)),
    }
}

/// The member that names what a request is about.
fn named_by(method: &Method) -> Option<Key> {
    match method {
        Method::ToolsCall | Method::PromptsGet => Some(Key::Name),
        Method::ResourcesRead => Some(Key::Uri),
        Method::TasksGet | Method::TasksUpdate | Method::TasksCancel => Some(Key::TaskId),
        _ => None,
    }
}

/// The headers of a request that say what its body says.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mcp<'a> {
    /// [`MCP_PROTOCOL_VERSION`].
    pub version: Told<'a>,
    /// [`MCP_METHOD`].
    pub method: Told<'a>,
    /// [`MCP_NAME`].
    pub name: Told<'a>,
}

/// A header of a request: what it says first, and whether it stands there again.
#[derive(Debug, Clone, Copy, Default)]
pub struct Told<'a> {
    first: Option<&'a HeaderValue>,
    is_twice: bool,
}

impl<'a> Told<'a> {
    /// It stands there with this value.
    pub fn note(&mut self, value: &'a HeaderValue) {
        self.is_twice = self.first.is_some();
        self.first.get_or_insert(value);
    }

    /// What it says first.
    pub fn first(&self) -> Option<&'a HeaderValue> {
        self.first
    }

    /// Whether it stands there again.
    pub fn is_twice(&self) -> bool {
        self.is_twice
    }

    /// What it says, where it stands there once.
    pub fn only(&self) -> Option<&'a HeaderValue> {
        self.first.filter(|_| !self.is_twice)
    }
}

/// Whether headers and body of a modern request agree; the text says where they do not.
pub fn check(told: &Mcp<'_>, method: &Method, params: &Object, revision: &str) -> Result<(), String> {
    agree(&MCP_PROTOCOL_VERSION, &told.version, revision)?;
    agree(&MCP_METHOD, &told.method, method.as_str())?;
    match name_of(method, params) {
        Some(name) => agree(&MCP_NAME, &told.name, &name),
        None => Ok(()),
    }
}

fn agree(name: &HeaderName, told: &Told<'_>, expected: &str) -> Result<(), String> {
    let value = match told.first {
        None => return Err(format!("the header `{name}` is missing")),
        Some(_) if told.is_twice => return Err(format!("the header `{name}` stands twice")),
        Some(value) => value,
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
    use crate::json;
    use bytes::Bytes;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_text_survives(text in any::<String>()) {
            prop_assert_eq!(decode(&encode(&text)), Some(text));
        }
    }

    proptest! {
        #[test]
        fn a_name_is_told_as_its_text(text in any::<String>()) {
            let params = Object::parse(format!("{{\"name\":{}}}", json::quote(&text)).into()).unwrap();
            prop_assert_eq!(name(&Method::ToolsCall, &params, None), Some(encode(&text)));
        }
    }

    #[test]
    fn a_plain_name_shares_the_memory_of_its_parameters() {
        let params = Object::parse(Bytes::from(br#"{"name":"echo"}"#.to_vec())).unwrap();
        let name = name(&Method::ToolsCall, &params, None).unwrap();
        assert_eq!(name.as_bytes().as_ptr(), params.raw()[9..].as_ptr());
        assert_eq!(super::name(&Method::ToolsCall, &Object::empty(), None), None);
    }

    #[test]
    fn a_number_is_written_in_decimal() {
        for value in (0..5000).chain([u64::MAX]) {
            assert_eq!(number(value), value.to_string());
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
        let judge = |told: &Mcp<'_>| check(told, &Method::ToolsCall, &params, "2026-07-28");
        let [version, method, other] = ["2026-07-28", "tools/call", "Tools/call"].map(HeaderValue::from_static);
        let (name, mut told) = (encode("eä"), Mcp::default());
        assert!(judge(&told).unwrap_err().contains("missing"));
        told.version.note(&version);
        told.method.note(&method);
        assert!(judge(&told).unwrap_err().contains("mcp-name"));
        told.name.note(&name);
        assert_eq!(judge(&told), Ok(()));
        told.name.note(&name);
        assert!(judge(&told).unwrap_err().contains("twice"));
        told.method = Told { first: Some(&other), is_twice: false };
        assert!(judge(&told).unwrap_err().contains("disagree"));
    }
}
