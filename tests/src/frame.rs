//! One JSON-RPC message, read shallowly: every value keeps its bytes.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A message as it stood on the wire; what is missing is `None`, `null` is `Some("null")`.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Frame {
    /// The version tag.
    #[serde(default, deserialize_with = "kept")]
    pub jsonrpc: Option<Box<RawValue>>,
    /// The id, byte for byte.
    #[serde(default, deserialize_with = "kept")]
    pub id: Option<Box<RawValue>>,
    /// The method of a request or notification.
    #[serde(default)]
    pub method: Option<String>,
    /// The parameters, byte for byte.
    #[serde(default, deserialize_with = "kept")]
    pub params: Option<Box<RawValue>>,
    /// The result, byte for byte.
    #[serde(default, deserialize_with = "kept")]
    pub result: Option<Box<RawValue>>,
    /// The error, byte for byte.
    #[serde(default, deserialize_with = "kept")]
    pub error: Option<Box<RawValue>>,
}

/// Keeps `null` as a value instead of taking it for "missing".
fn kept<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

impl Frame {
    /// Reads a message; the error says what was wrong with it.
    pub fn parse(bytes: &[u8]) -> Result<Frame, String> {
        serde_json::from_slice(bytes).map_err(|error| format!("{error}: {}", shorten(&String::from_utf8_lossy(bytes))))
    }

    /// The raw id, or an empty text.
    #[must_use]
    pub fn id_text(&self) -> &str {
        self.id.as_ref().map_or("", |raw| raw.get())
    }

    /// Whether this is the answer to a request.
    #[must_use]
    pub fn is_answer(&self) -> bool {
        self.method.is_none() && (self.result.is_some() || self.error.is_some())
    }

    /// Whether this is a notification of the given method.
    #[must_use]
    pub fn is_notice(&self, method: &str) -> bool {
        self.id.is_none() && self.method.as_deref() == Some(method)
    }

    /// One field of the parameters, byte for byte.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<Box<RawValue>> {
        fields(self.params.as_deref()?).remove(name)
    }

    /// One field of the parameters, as text.
    #[must_use]
    pub fn param_text(&self, name: &str) -> Option<String> {
        text(&self.param(name)?)
    }

    /// One field of the parameters' `_meta`, byte for byte.
    #[must_use]
    pub fn meta(&self, name: &str) -> Option<Box<RawValue>> {
        fields(&self.param("_meta")?).remove(name)
    }
}

/// The fields of an object, each byte for byte; nothing for other values.
#[must_use]
pub fn fields(raw: &RawValue) -> BTreeMap<String, Box<RawValue>> {
    serde_json::from_str(raw.get()).unwrap_or_default()
}

/// The text that a JSON string stands for.
#[must_use]
pub fn text(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

/// A text as a JSON string.
#[must_use]
pub fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The beginning of a text, for messages.
#[must_use]
pub fn shorten(text: &str) -> String {
    match text.char_indices().nth(300) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}

/// Puts `_meta` fields in front of the fields of a parameters object; both are JSON text.
#[must_use]
pub fn with_meta(params: &str, meta: &[String]) -> String {
    if meta.is_empty() {
        return params.to_owned();
    }
    let rest = params.trim().strip_prefix('{').expect("parameters are an object").trim_start();
    let comma = if rest.starts_with('}') { "" } else { "," };
    format!("{{\"_meta\":{{{}}}{comma}{rest}", meta.join(","))
}

#[cfg(test)]
mod tests {
    use super::{Frame, with_meta};

    #[test]
    fn values_keep_their_bytes() {
        let frame = Frame::parse(br#"{"id":1.0,"result":{"n":1e400,"s":"\ud800"}}"#).expect("valid");
        assert_eq!(frame.id_text(), "1.0");
        assert_eq!(frame.result.expect("there").get(), r#"{"n":1e400,"s":"\ud800"}"#);
    }

    #[test]
    fn null_is_a_value() {
        let frame = Frame::parse(br#"{"id":null,"result":null}"#).expect("valid");
        assert_eq!(frame.id_text(), "null");
        assert!(frame.is_answer());
    }

    #[test]
    fn meta_goes_first() {
        assert_eq!(with_meta("{}", &["\"a\":1".into()]), r#"{"_meta":{"a":1}}"#);
        assert_eq!(with_meta(r#"{ "b":2}"#, &["\"a\":1".into()]), r#"{"_meta":{"a":1},"b":2}"#);
    }
}
