//! Who hears what arrives on a link and belongs to no exchange.

use crate::protocol::{Method, Object};
use bytes::Bytes;

/// Takes what belongs to no exchange. Nothing here waits: a link's reader calls it.
pub(crate) trait Inbox: Send + Sync {
    /// A notification.
    fn notified(&self, method: Method, params: Object);

    /// It may have told of changes that were not heard.
    fn missed(&self) {}

    /// A request of the upstream; the answer's raw body, as the `result` or the `error` member would hold it.
    fn asked(&self, method: &Method) -> Answer;

    /// Something that the protocol does not allow; `kind` is a word of ours.
    fn violated(&self, kind: &'static str, detail: &dyn std::fmt::Display);

    /// What is probably wrong with the upstream, for a person.
    fn suspect(&self, cause: &str);
}

/// What a request of the upstream is answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A raw result.
    Result(Bytes),
    /// A raw error object.
    Error(Bytes),
}

impl Answer {
    /// The whole response frame.
    pub(crate) fn frame(&self, id: &[u8]) -> Bytes {
        match self {
            Self::Result(raw) => crate::protocol::frame::result(id, raw),
            Self::Error(raw) => crate::protocol::frame::error(Some(id), raw),
        }
    }
}
