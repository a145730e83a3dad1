//! What is sent on a link, and how it becomes a frame.

use crate::call::{Caller, LogLevel};
use crate::protocol::frame::{self, Decimal};
use crate::protocol::meta::{self, Envelope};
use crate::protocol::object::{Edit, Key};
use crate::protocol::{Method, Object};
use http::{HeaderName, HeaderValue};
use std::sync::Arc;

/// One request of ours to an upstream; its id is the link's to give.
#[derive(Debug, Clone)]
pub(crate) struct Request<'a> {
    /// What is asked.
    pub(crate) method: &'a Method,
    /// With what; its `_meta` is replaced.
    pub(crate) params: &'a Object,
    /// The members of `_meta` that go end to end.
    pub(crate) meta: &'a [u8],
    /// What a stateless upstream is told in every request.
    pub(crate) envelope: Option<Envelope<'a>>,
    /// Whether progress is wanted.
    pub(crate) progress: bool,
    /// The level from which on log messages are wanted.
    pub(crate) logs: Option<LogLevel>,
    /// Who makes it, where a client can be asked while it goes on.
    pub(crate) caller: Option<&'a Arc<Caller>>,
    /// The `Mcp-Param-*` headers, for HTTP.
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
}

impl<'a> Request<'a> {
    /// A request of our own, that wants nothing but the answer.
    pub(crate) fn new(method: &'a Method, params: &'a Object, envelope: Option<Envelope<'a>>) -> Self {
        Self { method, params, meta: b"", envelope, progress: false, logs: None, caller: None, headers: Vec::new() }
    }

    /// How long its frame will be at most, but for unusual capabilities.
    pub(crate) fn room(&self) -> usize {
        let envelope = self.envelope.map_or(0, |envelope| 256 + envelope.capabilities.len() + envelope.client.len());
        self.params.raw().len() + self.meta.len() + envelope + 128
    }

    /// Appends the whole frame, on one line and without its newline. The token of its progress is its id.
    pub(crate) fn write(&self, id: u64, out: &mut Vec<u8>) {
        let start = out.len();
        frame::open_request(id, self.method, out);
        let digits = Decimal::of(id);
        self.write_params(self.progress.then(|| digits.as_bytes()), out);
        frame::close(out);
        one_line(out, start);
    }

    /// Appends the frame of a notification.
    pub(crate) fn write_notification(&self, out: &mut Vec<u8>) {
        let start = out.len();
        frame::open_notification(self.method, out);
        self.write_params(None, out);
        frame::close(out);
        one_line(out, start);
    }

    fn write_params(&self, token: Option<&[u8]>, out: &mut Vec<u8>) {
        let meta = meta::write(self.envelope, token, self.meta);
        let edit = if meta.is_empty() { Edit::Drop } else { Edit::Set(&meta) };
        self.params.write(&[(Key::Meta, edit)], out);
    }
}

/// Raw newlines in valid JSON are white space; line framing cannot carry them.
fn one_line(out: &mut [u8], start: usize) {
    let frame = &mut out[start..];
    if memchr::memchr2(b'\n', b'\r', frame).is_some() {
        frame.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_callers_meta_is_replaced_and_newlines_are_white_space() {
        let params = Object::parse("{\"name\":\"a\",\n \"_meta\":{\"progressToken\":\"theirs\"}}".into()).unwrap();
        let request = Request { progress: true, meta: b"\"x\":1", ..Request::new(&Method::ToolsCall, &params, None) };
        let mut out = b"before\n".to_vec();
        request.write(7, &mut out);
        let text = "before\n{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"a\",  \"_meta\":{\"progressToken\":7,\"x\":1}}}";
        assert_eq!(String::from_utf8(out).unwrap(), text);
    }
}
