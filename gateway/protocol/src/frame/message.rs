//! A frame over raw JSON: parsed once and shallowly, written by splicing.

use super::decimal::Decimal;
use super::method::Method;
use crate::json;
use crate::json::{Fault, Member, Members};
use crate::value::spelling::{Found, Spots, Twofold};
use crate::value::{Object, spelling};
use bytes::{BufMut, Bytes};
use std::borrow::Borrow;

/// The most frames in one array of an upstream.
pub const BATCH_MAX: usize = 4096;
/// The longest id that is echoed.
pub const ID_BYTES_MAX: usize = 1024;
/// The longest name of a method: it is named where it is refused.
const METHOD_BYTES_MAX: usize = 1024;
/// What an id must be.
const ID: &str = "`id` must be an integer or a string of at most 1024 bytes, without U+0000 and lone surrogates";

/// A request's id: a JSON string or integer, as raw bytes, echoed exactly.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Id(Bytes);

impl Id {
    /// The id of a raw token, where it is a string or an integer of at most [`ID_BYTES_MAX`]. A string that not every program
    /// can hold, with U+0000 or a lone surrogate in it, is none: its owner could not find it again.
    pub fn from_raw(raw: Bytes) -> Option<Self> {
        let integer = || raw.iter().enumerate().all(|(at, byte)| byte.is_ascii_digit() || (at == 0 && *byte == b'-'));
        let string = || match memchr::memchr(b'\\', &raw) {
            Some(_) => json::unquote(&raw).is_some_and(|text| !text.contains('\0')),
            None => true,
        };
        let is_sound = raw.len() <= ID_BYTES_MAX && if raw.starts_with(b"\"") { string() } else { integer() };
        is_sound.then_some(Self(raw))
    }

    /// A copy of its own, for what outlives its frame: a part of a frame keeps all of it.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self(Bytes::copy_from_slice(&self.0))
    }

    /// The raw token.
    pub fn raw(&self) -> &Bytes {
        &self.0
    }

    /// The number, where the id is one of ours.
    pub fn number(&self) -> Option<u64> {
        // No number of ours is longer.
        if self.0.is_empty() || self.0.len() > 20 {
            return None;
        }
        self.0.iter().try_fold(0_u64, |number, byte| {
            let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
            number.checked_mul(10)?.checked_add(digit.into())
        })
    }
}

impl Borrow<[u8]> for Id {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

/// One JSON-RPC message.
#[derive(Debug, Clone)]
pub enum Frame {
    /// Wants an answer.
    Request {
        /// Echoed in the answer.
        id: Id,
        /// What is asked.
        method: Method,
        /// With what; `{}` where there are none.
        params: Object,
    },
    /// Wants none.
    Notification {
        /// What is told.
        method: Method,
        /// With what.
        params: Object,
    },
    /// Answers a request.
    Response {
        /// Of the request; `None` where its sender could not read it.
        id: Option<Id>,
        /// The result or the error.
        body: Body,
    },
}

/// What a response carries.
#[derive(Debug, Clone)]
pub enum Body {
    /// A result that is an object, as every result of the protocol is.
    Result(Object),
    /// A result that is none.
    Odd(Bytes),
    /// The raw error object.
    Error(Bytes),
    /// Both or neither: the sender does not keep to JSON-RPC.
    Neither,
}

/// Why some bytes are not a frame that we take.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{why}")]
pub struct FrameFault {
    /// Whether the bytes are JSON at all (-32600) or not (-32700).
    pub is_json: bool,
    /// Whether it is the parameters alone that cannot be taken (-32602).
    pub is_of_params: bool,
    /// The id to answer to, where one could be read.
    pub id: Option<Id>,
    /// The reason, for the sender.
    pub why: String,
}

impl FrameFault {
    fn invalid(id: Option<Id>, why: impl Into<String>) -> Self {
        Self { is_json: true, is_of_params: false, id, why: why.into() }
    }
}

impl From<Fault> for FrameFault {
    fn from(fault: Fault) -> Self {
        let is_json = matches!(fault, Fault::Depth | Fault::Many);
        Self { is_json, is_of_params: false, id: None, why: fault.to_string() }
    }
}

/// The members of a frame as they are met.
#[derive(Default)]
struct Parts {
    version: Option<bool>,
    id: Option<Bytes>,
    /// `None` inside where it is no string.
    method: Option<Option<Method>>,
    params: Option<Object>,
    odd_params: bool,
    result: Option<Body>,
    error: Option<Bytes>,
    /// Which of [`ENVELOPE`] were met, in any spelling.
    seen: u8,
    found: Found,
}

/// The keys of a frame.
const ENVELOPE: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

/// The first member as most write it, with what opens the frame.
const FIRST: &[u8] = b"{\"jsonrpc\":\"2.0\"";

/// Which of [`ENVELOPE`] a key is, and whether it is spelled just so.
fn recognise(key: &[u8]) -> Option<(usize, bool)> {
    let exact = match key {
        b"jsonrpc" => 0,
        b"id" => 1,
        b"method" => 2,
        b"params" => 3,
        b"result" => 4,
        b"error" => 5,
        _ => return Some((spelling::almost(key, &ENVELOPE)?, false)),
    };
    Some((exact, true))
}

impl Frame {
    /// Whether the text is an array: a batch.
    pub fn is_batch(text: &[u8]) -> bool {
        text.get(json::space(text, 0)) == Some(&b'[')
    }

    /// Takes a batch of at most `max` frames apart, each part in its own text.
    pub fn split(text: &Bytes, max: usize) -> Result<Vec<Bytes>, FrameFault> {
        let array = json::document(text)?;
        let parts = json::elements_up_to(max, &text[array.clone()]).map_err(|fault| match fault {
            Fault::Many => FrameFault::invalid(None, format!("a batch holds at most {max} frames")),
            fault => fault.into(),
        })?;
        Ok(parts.into_iter().map(|e| text.slice(array.start + e.start..array.start + e.end)).collect())
    }

    /// Parses one frame; the bytes are kept, not copied.
    pub fn parse(text: &Bytes) -> Result<Self, FrameFault> {
        Self::noting(text, &mut Spots::default())
    }

    /// As [`Self::parse`], and notes where the members of the parameters' `_meta` stand: they need not be looked for.
    pub fn noting(text: &Bytes, meta: &mut Spots) -> Result<Self, FrameFault> {
        std::str::from_utf8(text).map_err(|_| Fault::Utf8)?;
        let start = json::space(text, 0);
        if text.get(start) != Some(&b'{') {
            json::document(text)?;
            return Err(FrameFault::invalid(None, "a frame is a JSON object"));
        }
        let mut members = Members::at(text, start)?;
        let mut parts = Parts::default();
        if text[start..].starts_with(FIRST) {
            // As nearly every frame begins.
            parts.version = Some(true);
            parts.seen = 1;
            members.resume(start + FIRST.len());
        }
        while let Some(member) = members.next_key()? {
            let end = parts.take(text, member, meta)?;
            members.resume(end);
        }
        json::finish(text, members.end())?;
        parts.judge()
    }
}

impl Parts {
    /// Walks the member's value as its key says and returns where it ends.
    fn take(&mut self, text: &Bytes, member: Member, meta: &mut Spots) -> Result<usize, Fault> {
        let at = member.value;
        let Some((key, is_exact)) = member.key(text).and_then(|key| recognise(&key)) else {
            return json::value(text, at);
        };
        if self.seen & (1 << key) != 0 {
            self.found.note(Twofold::new("", ENVELOPE[key], true));
        }
        self.seen |= 1 << key;
        if !is_exact {
            self.found.note(Twofold::new("", ENVELOPE[key], false));
            return json::value(text, at);
        }
        let key = ENVELOPE[key];
        if text.get(at) == Some(&b'{') && matches!(key, "params" | "result") {
            let (object, end) = Object::walk(text, at, meta)?;
            match key {
                "params" => self.params = Some(object),
                _ => self.result = Some(Body::Result(object)),
            }
            return Ok(end);
        }
        let end = json::value(text, at)?;
        let raw = &text[at..end];
        let shared = || text.slice(at..end);
        match key {
            "jsonrpc" => self.version = Some(raw == b"\"2.0\""),
            "id" => self.id = Some(shared()),
            "method" => self.method = Some(Method::of_raw(raw)),
            "error" => self.error = Some(shared()),
            "result" => self.result = Some(Body::Odd(shared())),
            _ => self.odd_params = raw != b"null",
        }
        Ok(end)
    }

    /// Inlined: what was met is large, and would be copied.
    #[inline(always)]
    fn judge(self) -> Result<Frame, FrameFault> {
        let has_id = self.id.is_some();
        let is_null = self.id.as_deref() == Some(b"null");
        // Of two ids neither is the one to answer to.
        let has_two = self.found.double == Some(Twofold::new("", "id", true));
        let id = self.id.filter(|_| !has_two).and_then(Id::from_raw);
        let refuse = |why: &str| Err(FrameFault::invalid(id.clone(), why));
        if self.version != Some(true) {
            return refuse("`jsonrpc` must be \"2.0\"");
        }
        if let Some(double) = self.found.double {
            return refuse(&double.of(""));
        }
        let Some(method) = self.method else {
            if has_id && id.is_none() && !is_null {
                return refuse(ID);
            }
            return Ok(Frame::Response {
                id,
                body: match (self.result, self.error) {
                    (Some(result), None) => result,
                    // Some libraries write the member that there is not as null.
                    (Some(result), Some(error)) if error == "null" => result,
                    (Some(Body::Odd(result)), Some(error)) if result == "null" && error.starts_with(b"{") => {
                        Body::Error(error)
                    }
                    (None, Some(error)) if error.starts_with(b"{") => Body::Error(error),
                    _ => Body::Neither,
                },
            });
        };
        // Some libraries write the member that there is not as null.
        let has_result = self.result.is_some_and(|body| !matches!(body, Body::Odd(raw) if raw == "null"));
        if has_result || self.error.is_some_and(|raw| raw != "null") {
            return refuse("`result` or `error` stands beside `method`: a frame asks or answers, never both");
        }
        let Some(method) = method.filter(|method| method.as_str().len() <= METHOD_BYTES_MAX) else {
            return refuse("`method` must be a string of at most 1024 bytes");
        };
        if self.odd_params {
            return refuse("`params` must be an object");
        }
        if let Some(variant) = self.found.variant {
            return refuse(&variant.of(""));
        }
        let params = self.params.unwrap_or_default();
        if let Some(double) = params.doubled() {
            let why = double.of("params");
            return Err(FrameFault { is_of_params: true, ..FrameFault::invalid(id, why) });
        }
        match (has_id, id) {
            (true, Some(id)) => Ok(Frame::Request { id, method, params }),
            (true, None) => Err(FrameFault::invalid(None, ID)),
            (false, _) => Ok(Frame::Notification { method, params }),
        }
    }
}

/// Opens a request of ours; the caller writes the params object and closes with [`close`].
pub fn open_request<B: BufMut>(id: u64, method: &Method, out: &mut B) {
    out.put_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.put_slice(Decimal::of(id).as_bytes());
    out.put_slice(b",\"method\":");
    put_method(method, out);
    out.put_slice(b",\"params\":");
}

/// Opens a notification; as [`open_request`].
pub fn open_notification<B: BufMut>(method: &Method, out: &mut B) {
    out.put_slice(b"{\"jsonrpc\":\"2.0\",\"method\":");
    put_method(method, out);
    out.put_slice(b",\"params\":");
}

/// So many bytes stand around the id and the result of a response.
pub const RESULT_AROUND: usize = "{\"jsonrpc\":\"2.0\",\"id\":,\"result\":}".len();

/// Opens a response with a result; `id` is the raw id of the request.
pub fn open_result<B: BufMut>(id: &[u8], out: &mut B) {
    out.put_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.put_slice(id);
    out.put_slice(b",\"result\":");
}

/// Closes what an `open_…` has opened.
pub fn close<B: BufMut>(out: &mut B) {
    out.put_u8(b'}');
}

/// A whole response with a result.
pub fn result(id: &[u8], result: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(result.len() + id.len() + 48);
    open_result(id, &mut out);
    out.put_slice(result);
    close(&mut out);
    out.into()
}

/// A whole response with an error; `null` where the request's id could not be read.
pub fn error(id: Option<&[u8]>, error: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(error.len() + 96);
    out.put_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.put_slice(id.unwrap_or(b"null"));
    out.put_slice(b",\"error\":");
    out.put_slice(error);
    out.put_u8(b'}');
    out.into()
}

/// A whole notification.
pub fn notification(method: &Method, params: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(params.len() + 96);
    open_notification(method, &mut out);
    out.put_slice(params);
    close(&mut out);
    out.into()
}

/// Raw newlines in valid JSON are white space; line and event framing cannot carry them.
pub fn one_line<F: AsMut<[u8]>>(mut frame: F) -> F {
    let bytes = frame.as_mut();
    if memchr::memchr2(b'\n', b'\r', bytes).is_some() {
        bytes.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
    }
    frame
}

fn put_method<B: BufMut>(method: &Method, out: &mut B) {
    match method {
        Method::Other(text) => out.put_slice(json::quote(text).as_bytes()),
        known => {
            out.put_u8(b'"');
            out.put_slice(known.as_str().as_bytes());
            out.put_u8(b'"');
        }
    }
}

#[cfg(test)]
mod tests;
