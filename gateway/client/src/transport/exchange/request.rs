//! What is sent on a link, and how it becomes a frame.

use crate::call::LogLevel;
use crate::call::caller::Caller;
use crate::call::caller::trace::Attempt;
use crate::call::share::Share;
use crate::memory::Composed;
use crate::memory::budget::Charge;
use crate::protocol::frame::Decimal;
use crate::protocol::frame::Method;
use crate::protocol::meta::Envelope;
use crate::protocol::value::{Edit, Key, Object};
use crate::protocol::{frame, meta};
use crate::transport::identity;
use bytes::{BufMut, Bytes};
use http::{HeaderName, HeaderValue};
use std::borrow::Cow;
use std::sync::Arc;

/// What stands around parameters, at most.
const AROUND: usize = 256;

/// One request of ours to an upstream; its id is the link's to give.
#[derive(Clone)]
pub(crate) struct Request<'a> {
    /// What is asked.
    pub(crate) method: &'a Method,
    /// With what; its `_meta` is replaced.
    pub(crate) params: &'a Object,
    /// The JSON string that replaces `name` in the parameters.
    pub(crate) name: Option<&'a Bytes>,
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
    /// Whose share of the link it takes; `None`: it is a request of our own.
    pub(crate) share: Option<Share>,
    /// The `Mcp-Param-*` headers, for HTTP.
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    /// The header that says whose call it is, for HTTP.
    pub(crate) identity: Option<Box<(HeaderName, HeaderValue)>>,
    /// Whose trace context stands in `meta`, for the headers of HTTP.
    pub(crate) attempt: Option<&'a Attempt>,
}

impl<'a> Request<'a> {
    /// A request of our own, that wants nothing but the answer.
    pub(crate) fn new(method: &'a Method, params: &'a Object, envelope: Option<Envelope<'a>>) -> Self {
        let (progress, logs, caller, share) = (false, None, None, None);
        let (name, meta, headers, identity, attempt) = (None, &b""[..], Vec::new(), None, None);
        Self { method, params, name, meta, envelope, progress, logs, caller, share, headers, identity, attempt }
    }

    /// How long its frame will be at most, but for unusual capabilities.
    pub(crate) fn room(&self) -> usize {
        let envelope = self.envelope.map_or(0, |envelope| 256 + envelope.capabilities.len() + envelope.client.len());
        self.params.raw().len() + self.name.map_or(0, Bytes::len) + self.meta.len() + envelope + 128
    }

    /// Appends the whole frame, on one line and without its newline. The token of its progress is its id.
    pub(crate) fn write(&self, id: u64, out: &mut Vec<u8>) {
        let start = out.len();
        self.write_with(id, &self.meta_of(id), out);
        frame::message::one_line(&mut out[start..]);
    }

    /// Appends a call of a tool as it is written where nothing of the protocol is known, on one line.
    pub(crate) fn write_bare(&self, id: u64, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(b"{\"id\":");
        out.extend_from_slice(Decimal::of(id).as_bytes());
        out.extend_from_slice(b",\"name\":");
        out.extend_from_slice(self.name.map(|name| &**name).or_else(|| self.params.get(Key::Name)).unwrap_or(b"\"\""));
        out.extend_from_slice(b",\"arguments\":");
        out.extend_from_slice(self.params.get(Key::Arguments).unwrap_or(b"{}"));
        frame::message::close(out);
        frame::message::one_line(&mut out[start..]);
    }

    /// The whole frame, as [`Self::write`] writes it, counted as long as it is kept.
    pub(crate) fn frame(&self, id: u64, charge: Charge) -> Bytes {
        let meta = self.meta_of(id);
        // A method's name may be escaped, each byte in six.
        let most = self.params.raw().len()
            + self.name.map_or(0, Bytes::len)
            + meta.len()
            + 6 * self.method.as_str().len()
            + AROUND;
        Composed::shared(most, charge, |out| {
            put_line(out, |out| self.write_with(id, &meta, out));
        })
    }

    fn meta_of(&self, id: u64) -> Cow<'static, [u8]> {
        if let Some(plain) = self.envelope.filter(|_| !self.progress && self.meta.is_empty()).and_then(identity::plain)
        {
            return Cow::Borrowed(plain);
        }
        if self.envelope.is_none() && !self.progress && self.meta.is_empty() {
            return Cow::Borrowed(b"");
        }
        let digits = Decimal::of(id);
        meta::write(self.envelope, self.progress.then(|| digits.as_bytes()), self.meta).into()
    }

    fn write_with<B: BufMut>(&self, id: u64, meta: &[u8], out: &mut B) {
        frame::message::open_request(id, self.method, out);
        self.write_params(meta, out);
        frame::message::close(out);
    }

    /// Appends the frame of a notification.
    pub(crate) fn write_notification(&self, out: &mut Vec<u8>) {
        let start = out.len();
        frame::message::open_notification(self.method, out);
        self.write_params(&meta::write(self.envelope, None, self.meta), out);
        frame::message::close(out);
        frame::message::one_line(&mut out[start..]);
    }

    fn write_params<B: BufMut>(&self, meta: &[u8], out: &mut B) {
        let edit = if meta.is_empty() { Edit::Drop } else { Edit::Set(meta) };
        // A request about the task of a call has no name.
        match self.name.filter(|_| self.params.get(Key::Name).is_some()) {
            Some(name) => self.params.write(&[(Key::Meta, edit), (Key::Name, Edit::Set(name))], out),
            None => self.params.write(&[(Key::Meta, edit)], out),
        }
    }
}

/// Has `write` take what it writes off the front of the room, and puts that on one line.
fn put_line(out: &mut &mut [u8], write: impl FnOnce(&mut &mut [u8])) {
    let room = std::mem::take(out);
    let mut rest = &mut *room;
    write(&mut rest);
    let rest = rest.len();
    let (line, rest) = room.split_at_mut(room.len() - rest);
    frame::message::one_line(line);
    *out = rest;
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

    #[test]
    fn owners_name_replaces_the_callers_within_the_room() {
        let params = |text: &'static str| Object::parse(text.into()).unwrap();
        let named = params("{\"name\":\"a__x\",\"arguments\":{},\"_meta\":{}}");
        let name = Bytes::from_static(b"\"a name longer than the public one\"");
        let request =
            |params, meta| Request { name: Some(&name), meta, ..Request::new(&Method::ToolsCall, params, None) };
        let expected = "{\"name\":\"a name longer than the public one\",\"arguments\":{}";
        for (meta, end) in [(&b""[..], "}"), (&b"\"x\":1"[..], ",\"_meta\":{\"x\":1}}")] {
            let (request, mut out) = (request(&named, meta), Vec::new());
            request.write(7, &mut out);
            let text = format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{expected}{end}}}");
            assert_eq!(String::from_utf8(out).unwrap(), text);
            assert!(text.len() <= request.room() && request.frame(7, Charge::default()).starts_with(text.as_bytes()));
        }
        // Parameters without a name, such as those about a task, get none.
        let (unnamed, mut out) = (params("{\"taskId\":\"1\"}"), Vec::new());
        request(&unnamed, b"").write(7, &mut out);
        assert!(out.ends_with(b"\"params\":{\"taskId\":\"1\"}}"));
    }
}
