//! A call under way, as whoever asks its client may act on it.

use super::asked::Asked;
use super::edge::Edge;
use crate::call::Reply;
use std::sync::Arc;

/// A call under way, as its dialogue may act on it.
pub(super) struct Line<'a> {
    /// Events and the outcome are read from it; a dialogue may put another in its place. It is not read beyond its outcome.
    pub(super) reply: &'a mut Reply,
    /// The client's request.
    pub(super) asked: &'a Asked,
    /// Where calls are made.
    pub(super) edge: &'a Arc<Edge>,
}
