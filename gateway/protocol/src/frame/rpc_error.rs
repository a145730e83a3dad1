//! JSON-RPC error codes, and the error object read and written.

use crate::json;
use bytes::Bytes;

/// The text is not JSON.
pub const PARSE: i64 = -32700;
/// The JSON is not a request.
pub const INVALID_REQUEST: i64 = -32600;
/// The method is unknown here.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters do not fit the method.
pub const INVALID_PARAMS: i64 = -32602;
/// Anything that went wrong inside.
pub const INTERNAL: i64 = -32603;
/// A resource is missing, as legacy peers say it.
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// A URL must be visited first (2025-11-25).
pub const URL_ELICITATION_REQUIRED: i64 = -32042;
/// A header and the body disagree (modern).
pub const HEADER_MISMATCH: i64 = -32020;
/// The caller did not declare a capability that the call needs (modern).
pub const MISSING_CAPABILITY: i64 = -32021;
/// The revision is not spoken here (modern).
pub const UNSUPPORTED_REVISION: i64 = -32022;
/// No session, or an unknown one, as the field says it.
pub const SESSION: i64 = -32000;

/// The code of an error that has none.
const CODELESS: i64 = -32000;

/// A JSON-RPC error object as raw bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcError(Bytes);

impl RpcError {
    /// Takes the raw object of a peer.
    pub fn from_raw(raw: Bytes) -> Self {
        Self(raw)
    }

    /// Takes the raw object of a peer, where it has what every error must have; else what it has not.
    pub fn checked(raw: Bytes) -> Result<Self, &'static str> {
        let error = Self(raw);
        if !error.0.starts_with(b"{") {
            return Err("the error in it is not an object");
        }
        if error.code().is_none() {
            return Err("the `code` of the error in it is not an integer of 64 bits");
        }
        match json::get(&error.0, "message").is_some_and(|raw| raw.starts_with(b"\"")) {
            true => Ok(error),
            false => Err("the `message` of the error in it is not a string"),
        }
    }

    /// The error that a peer means, whatever it has of one: an object without a code, a text.
    pub fn loosely(raw: &[u8]) -> Self {
        let is_json = json::document(raw).is_ok();
        if let (true, Ok(error)) = (is_json, Self::checked(Bytes::copy_from_slice(raw))) {
            return error;
        }
        let code = json::get(raw, "code").and_then(|code| std::str::from_utf8(code).ok()?.parse().ok());
        let message = json::get(raw, "message").unwrap_or(raw);
        let message = json::unquote(message).unwrap_or_else(|| String::from_utf8_lossy(message));
        Self::new(code.unwrap_or(CODELESS), &message, None)
    }

    /// Writes a new one; `data` is raw JSON.
    pub fn new(code: i64, message: &str, data: Option<&str>) -> Self {
        let data = data.map(|data| format!(",\"data\":{data}")).unwrap_or_default();
        Self(format!("{{\"code\":{code},\"message\":{}{data}}}", json::quote(message)).into())
    }

    /// The raw object.
    pub fn raw(&self) -> &Bytes {
        &self.0
    }

    /// Its code, where it has one.
    pub fn code(&self) -> Option<i64> {
        std::str::from_utf8(json::get(&self.0, "code")?).ok()?.parse().ok()
    }

    /// Its message.
    pub fn message(&self) -> Option<String> {
        json::unquote(json::get(&self.0, "message")?).map(Into::into)
    }

    /// Its data, raw.
    pub fn data(&self) -> Option<&[u8]> {
        json::get(&self.0, "data")
    }
}
