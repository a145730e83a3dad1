//! A call under way, as whoever asks its client may act on it.

use super::shared::Edge;
use crate::call::reply::Reply;
use crate::memory::account::Hold;
use crate::response::ResponseEncoder;
use std::sync::Arc;

/// A call under way, as its dialogue may act on it.
pub(crate) struct CallContext<'a> {
    /// Events and the outcome are read from it; a dialogue may put another in its place. It is not read beyond its outcome.
    pub(crate) reply: &'a mut Reply,
    /// The client's request.
    pub(crate) asked: &'a ResponseEncoder,
    /// What can take the memory of its request away.
    pub(crate) held: &'a mut Option<Hold>,
    /// Where calls are made.
    pub(crate) edge: &'a Arc<Edge>,
}
