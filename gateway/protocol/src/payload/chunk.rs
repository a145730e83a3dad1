//! Results that come in chunks after their answer (`streamId`, `notifications/stream/chunk`), as no revision has them: which frames
//! those are.

use crate::frame::Method;
use crate::frame::message::Body;
use crate::json;
use crate::value::Object;
use bytes::Bytes;
use memchr::memmem::Finder;
use std::sync::LazyLock;

/// The notification that carries one.
const CHUNK: &str = "notifications/stream/chunk";
/// An answer that says that its result is to come is short, and so is the result's name.
const HEAD_BYTES_MAX: usize = 4096;
/// The longest id of a result, in bytes.
pub const ID_BYTES_MAX: usize = 256;

/// Whether a notification carries a chunk.
pub fn is_chunk(method: &Method) -> bool {
    matches!(method, Method::Other(name) if **name == *CHUNK)
}

/// Of which result a notification carries a chunk, raw, and whether it is the last.
pub fn part_of(params: &Object) -> Option<(&[u8], bool)> {
    let (id, chunk) = (params.find("streamId")?, params.find("chunk")?);
    Some((id, json::get(chunk, "final") == Some(b"true")))
}

/// The id of the result that an answer announces, raw.
pub fn announced_id(body: &Body) -> Option<Bytes> {
    let Body::Result(head) = body else { return None };
    let raw = head.raw();
    static STREAM_ID: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"streamId\""));
    if raw.len() > HEAD_BYTES_MAX || STREAM_ID.find(raw).is_none() {
        return None;
    }
    let stream = head.find("stream");
    let id = head.find("streamId").or_else(|| stream.and_then(|stream| json::get(stream, "streamId")))?;
    let is_name = !id.starts_with(b"{") && !id.starts_with(b"[") && id.len() <= ID_BYTES_MAX;
    (stream != Some(b"false") && is_name).then(|| Bytes::copy_from_slice(id))
}
