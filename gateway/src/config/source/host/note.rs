//! What is said of a server, with its place.

use std::ops::Range;

use crate::config::source::node::{Node, Shape};

/// What is doubtful about a server, or why it is left out.
#[derive(Debug)]
pub(crate) struct Note {
    pub(crate) kind: &'static str,
    pub(crate) at: Range<usize>,
    pub(crate) text: String,
    pub(crate) label: Option<String>,
    /// Where the other one stands of two that contradict each other.
    pub(crate) other: Option<Range<usize>>,
}

impl Note {
    pub(super) fn new(kind: &'static str, at: Range<usize>, text: impl Into<String>) -> Self {
        Self { kind, at, text: text.into(), label: None, other: None }
    }
}

/// A value without a key of its own.
pub(super) fn leaf(shape: Shape, of: &Node) -> Node {
    Node { key: of.key.clone(), span: of.span.clone(), shape }
}
