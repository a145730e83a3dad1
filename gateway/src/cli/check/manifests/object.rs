//! One object of Kubernetes, as far as it matters here.

use crate::config::source::node::{Node, Shape};

/// An object, or those of a list of them.
pub(super) fn items(document: Node) -> Vec<Node> {
    match kind(&document) {
        "List" => list(&document, "items").to_vec(),
        _ => vec![document],
    }
}

/// What an object starts, where it starts pods.
pub(super) fn pod(object: &Node) -> Option<&Node> {
    let spec = object.get("spec")?;
    match kind(object) {
        "Pod" => Some(spec),
        _ => spec.get("template")?.get("spec"),
    }
}

/// What sort of object it is.
pub(super) fn kind(object: &Node) -> &str {
    text(object, "kind").unwrap_or_default()
}

/// Its name.
pub(super) fn name(object: &Node) -> Option<String> {
    text(object.get("metadata")?, "name").map(str::to_owned)
}

/// A member that is a text.
pub(super) fn text<'a>(node: &'a Node, key: &str) -> Option<&'a str> {
    match &node.get(key)?.shape {
        Shape::Text(text) => Some(text),
        _ => None,
    }
}

/// The items of a member that is a list.
pub(super) fn list<'a>(node: &'a Node, key: &str) -> &'a [Node] {
    match node.get(key).map(|node| &node.shape) {
        Some(Shape::List(items)) => items,
        _ => &[],
    }
}

/// Those of them that are texts.
pub(super) fn texts<'a>(node: &'a Node, key: &str) -> Vec<&'a str> {
    let texts = list(node, key).iter().filter_map(|item| match &item.shape {
        Shape::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}
