//! JSON-RPC frames over raw JSON: parsed once and shallowly, written by splicing.

use super::json::{self, Fault, Member, Members};
use super::method::Method;
use super::object::Object;
use bytes::{BufMut, Bytes};

/// The longest id that is echoed.
pub const ID_BYTES_MAX: usize = 1024;

/// A request's id: a JSON string or integer, as raw bytes, echoed exactly.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Id(Bytes);

impl Id {
    /// The id of a raw token, where it is a string or an integer of at most [`ID_BYTES_MAX`].
    pub fn from_raw(raw: Bytes) -> Option<Self> {
        let integer = raw.iter().enumerate().all(|(at, byte)| byte.is_ascii_digit() || (at == 0 && *byte == b'-'));
        (raw.len() <= ID_BYTES_MAX && (integer || raw.starts_with(b"\""))).then_some(Self(raw))
    }

    /// The raw token.
    pub fn raw(&self) -> &Bytes {
        &self.0
    }

    /// The number, where the id is one of ours.
    pub fn number(&self) -> Option<u64> {
        std::str::from_utf8(&self.0).ok()?.parse().ok()
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
    /// The id to answer to, where one could be read.
    pub id: Option<Id>,
    /// The reason, for the sender.
    pub why: String,
}

impl FrameFault {
    fn invalid(id: Option<Id>, why: impl Into<String>) -> Self {
        Self { is_json: true, id, why: why.into() }
    }
}

impl From<Fault> for FrameFault {
    fn from(fault: Fault) -> Self {
        Self { is_json: matches!(fault, Fault::Depth), id: None, why: fault.to_string() }
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
    twice: bool,
}

impl Frame {
    /// Whether the text is an array: a batch.
    pub fn is_batch(text: &[u8]) -> bool {
        text.get(json::space(text, 0)) == Some(&b'[')
    }

    /// Takes a batch apart, each part in its own text.
    pub fn split(text: &Bytes) -> Result<Vec<Bytes>, FrameFault> {
        let array = json::document(text)?;
        Ok(json::elements(&text[array.clone()])?
            .into_iter()
            .map(|e| text.slice(array.start + e.start..array.start + e.end))
            .collect())
    }

    /// Parses one frame; the bytes are kept, not copied.
    pub fn parse(text: &Bytes) -> Result<Self, FrameFault> {
        std::str::from_utf8(text).map_err(|_| Fault::Utf8)?;
        let start = json::space(text, 0);
        if text.get(start) != Some(&b'{') {
            json::document(text)?;
            return Err(FrameFault::invalid(None, "a frame is a JSON object"));
        }
        let mut members = Members::at(text, start)?;
        let mut parts = Parts::default();
        while let Some(member) = members.next_key()? {
            let end = parts.take(text, member)?;
            members.resume(end);
        }
        json::finish(text, members.end())?;
        parts.judge()
    }
}

impl Parts {
    /// Walks the member's value as its key says and returns where it ends.
    fn take(&mut self, text: &Bytes, member: Member) -> Result<usize, Fault> {
        let at = member.value;
        let key = member.key(text).unwrap_or_default();
        if text.get(at) == Some(&b'{') && matches!(&*key, b"params" | b"result") {
            let (object, end) = Object::walk(text, at)?;
            self.twice |= match &*key {
                b"params" => self.params.replace(object).is_some(),
                _ => self.result.replace(Body::Result(object)).is_some(),
            };
            return Ok(end);
        }
        let end = json::value(text, at)?;
        let raw = &text[at..end];
        let shared = || text.slice(at..end);
        self.twice |= match &*key {
            b"jsonrpc" => self.version.replace(raw == b"\"2.0\"").is_some(),
            b"id" => self.id.replace(shared()).is_some(),
            b"method" => self.method.replace(Method::of_raw(raw)).is_some(),
            b"error" => self.error.replace(shared()).is_some(),
            b"result" => self.result.replace(Body::Odd(shared())).is_some(),
            b"params" => std::mem::replace(&mut self.odd_params, raw != b"null"),
            _ => false,
        };
        Ok(end)
    }

    fn judge(self) -> Result<Frame, FrameFault> {
        let has_id = self.id.is_some();
        let is_null = self.id.as_deref() == Some(b"null");
        let id = self.id.and_then(Id::from_raw);
        let refuse = |why: &str| Err(FrameFault::invalid(id.clone(), why));
        if self.version != Some(true) {
            return refuse("`jsonrpc` must be \"2.0\"");
        }
        if self.twice {
            return refuse("a member stands twice");
        }
        let Some(method) = self.method else {
            if has_id && id.is_none() && !is_null {
                return refuse("`id` must be a string or an integer");
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
        let Some(method) = method else {
            return refuse("`method` must be a string");
        };
        if self.odd_params {
            return refuse("`params` must be an object");
        }
        let params = self.params.unwrap_or_default();
        if params.is_ambiguous() {
            return refuse("a member of `params` stands twice");
        }
        match (has_id, id) {
            (true, Some(id)) => Ok(Frame::Request { id, method, params }),
            (true, None) => Err(FrameFault::invalid(
                None,
                format!("`id` must be a string or an integer of at most {ID_BYTES_MAX} bytes"),
            )),
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
pub fn one_line(mut frame: Vec<u8>) -> Vec<u8> {
    if memchr::memchr2(b'\n', b'\r', &frame).is_some() {
        frame.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
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

/// A number in decimal without an allocation.
pub struct Decimal([u8; 20], usize);

impl Decimal {
    /// The digits of `number`.
    pub fn of(mut number: u64) -> Self {
        let (mut digits, mut at) = ([0; 20], 20);
        loop {
            at -= 1;
            digits[at] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                return Self(digits, at);
            }
        }
    }

    /// The digits as text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0[self.1..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Frame, FrameFault> {
        Frame::parse(&Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn ids_are_strings_or_integers_and_kept_as_written() {
        for id in ["1", "-7", "0", "\"1\"", "\"\"", "9007199254740993", "18446744073709551616", "\"\\u0041\""] {
            let Ok(Frame::Request { id: seen, .. }) = parse(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"x"}}"#))
            else {
                panic!("{id}")
            };
            assert_eq!(seen.raw(), id.as_bytes());
        }
        for id in ["null", "1.5", "1e3", "1.0", "{}", "[]", "true"] {
            assert!(parse(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"x"}}"#)).is_err_and(|f| f.is_json), "{id}");
        }
        let long = format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"x"}}"#, "a".repeat(ID_BYTES_MAX));
        assert!(parse(&long).is_err());
    }

    #[test]
    fn what_is_no_frame_says_why() {
        for (text, is_json) in [
            ("", false),
            ("{", false),
            ("[]", true),
            ("7", true),
            ("{}", true),
            (r#"{"jsonrpc":"1.0","id":1,"method":"x"}"#, true),
            (r#"{"jsonrpc":"2.0","id":1,"method":"x","method":"y"}"#, true),
            (r#"{"jsonrpc":"2.0","id":1,"method":"x","params":[]}"#, true),
            (r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"name":1,"name":2}}"#, true),
            (r#"{"jsonrpc":"2.0","id":1,"method":"x"} x"#, false),
        ] {
            let fault = parse(text).expect_err(text);
            assert_eq!(fault.is_json, is_json, "{text}: {fault}");
        }
    }

    #[test]
    fn responses_are_told_apart() {
        let body = |text: &str| match parse(text) {
            Ok(Frame::Response { body, .. }) => body,
            other => panic!("{other:?}"),
        };
        assert!(matches!(body(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), Body::Result(_)));
        assert!(matches!(body(r#"{"jsonrpc":"2.0","id":1,"result":null}"#), Body::Odd(_)));
        assert!(matches!(body(r#"{"jsonrpc":"2.0","id":null,"error":{"code":1}}"#), Body::Error(_)));
        assert!(matches!(body(r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#), Body::Neither));
    }

    #[test]
    fn frames_of_ours_parse() {
        let mut out = Vec::new();
        open_request(42, &Method::Other("a\"b".into()), &mut out);
        Object::empty().write(&[], &mut out);
        close(&mut out);
        let Ok(Frame::Request { id, method, .. }) = Frame::parse(&out.into()) else { panic!() };
        assert_eq!((id.number(), method.as_str()), (Some(42), "a\"b"));
        assert_eq!(Decimal::of(u64::MAX).as_bytes(), u64::MAX.to_string().as_bytes());
    }
}
