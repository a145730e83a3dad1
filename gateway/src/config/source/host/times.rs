//! Time-outs, in the units of the host.

use super::dialect::Dialect;
use super::note::leaf;
use crate::config::source::node::{Node, Shape};

/// A key of ours, the unit of a number, and the keys of hosts that mean it.
type Key = (&'static str, &'static str, &'static [&'static str]);

/// What each key of a dialect means.
pub(super) fn keys(dialect: Dialect) -> [Key; 4] {
    let (key, unit) = match dialect {
        // It bounds the start there, and no call.
        Dialect::OpenCode => ("startup_timeout", "ms"),
        Dialect::Cline | Dialect::Codex | Dialect::Goose => ("call_timeout", "s"),
        _ => ("call_timeout", "ms"),
    };
    [
        (key, unit, &["timeout"]),
        ("call_timeout", "s", &["tool_timeout_sec"]),
        ("startup_timeout", "s", &["startup_timeout_sec"]),
        ("startup_timeout", "ms", &["startup_timeout_ms", "connectionTimeout"]),
    ]
}

/// What a value says. opencode 2 has one for each purpose; that of its lists, `catalog`, has no counterpart here.
pub(super) fn read(key: &str, unit: &str, node: &Node, dialect: Dialect) -> Vec<(String, Node)> {
    if let (Shape::Table(_), Dialect::OpenCode) = (&node.shape, dialect) {
        let parts = [("startup_timeout", &["startup"][..]), ("call_timeout", &["execution", "request"])];
        let of = |(key, names): (&str, &[&str])| one(key, unit, names.iter().find_map(|name| node.get(name))?);
        return parts.into_iter().filter_map(of).collect();
    }
    one(key, unit, node).into_iter().collect()
}

fn one(key: &str, unit: &str, node: &Node) -> Option<(String, Node)> {
    let shape = match &node.shape {
        Shape::Integer(0) if key == "startup_timeout" => return None,
        Shape::Integer(number) => Shape::Text(format!("{number}{unit}")),
        Shape::Float(number) if unit == "s" => Shape::Text(format!("{}ms", (number * 1000.0).round())),
        shape => shape.clone(),
    };
    Some((key.to_owned(), leaf(shape, node)))
}
