//! The places in the arguments of a tool that headers mirror.

use std::collections::BTreeMap;

/// The most annotations of one tool: each is a header of each of its calls.
pub(super) const ANNOTATIONS_MAX: usize = 64;

/// A place in the arguments that a path leads to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Node {
    /// The header that mirrors what stands here.
    pub(super) header: Option<usize>,
    /// The members that paths go on by.
    pub(super) members: BTreeMap<Box<str>, Node>,
}

/// So much of a name stands in a message.
pub(super) fn shown(name: &str) -> &str {
    name.char_indices().nth(64).map_or(name, |(at, _)| &name[..at])
}
