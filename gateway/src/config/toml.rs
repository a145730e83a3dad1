//! A TOML file as a tree of values with their places.

use std::ops::Range;

use toml_edit::{Document, Item, Table, TableLike, Value};

use super::source::{Node, Shape};

/// A syntax error and where it stands.
pub(super) struct Syntax {
    pub(super) at: Range<usize>,
    pub(super) text: String,
}

/// Parses `text`; keys keep their order.
pub(super) fn parse(text: &str) -> Result<Node, Syntax> {
    let document = Document::parse(text).map_err(|error| Syntax {
        at: error.span().unwrap_or(0..0),
        text: error.message().lines().collect::<Vec<_>>().join(", "),
    })?;
    Ok(table(document.as_table(), 0..0))
}

fn table(table: &Table, key: Range<usize>) -> Node {
    let span = table.span().unwrap_or_else(|| key.clone());
    Node { key, span, shape: Shape::Table(entries(table)) }
}

fn entries(table: &dyn TableLike) -> Vec<(String, Node)> {
    table
        .iter()
        .map(|(name, _)| name)
        .filter_map(|name| table.get_key_value(name))
        .filter_map(|(key, found)| {
            let place = key.span().unwrap_or_default();
            Some((key.get().to_owned(), item(found, place)?))
        })
        .collect()
}

fn item(item: &Item, key: Range<usize>) -> Option<Node> {
    match item {
        Item::None => None,
        Item::Value(found) => Some(value(found, key)),
        Item::Table(found) => Some(table(found, key)),
        Item::ArrayOfTables(found) => {
            let items = found.iter().map(|found| table(found, found.span().unwrap_or_else(|| key.clone()))).collect();
            Some(Node { span: found.span().unwrap_or_else(|| key.clone()), key, shape: Shape::List(items) })
        }
    }
}

fn value(value: &Value, key: Range<usize>) -> Node {
    let shape = match value {
        Value::String(text) => Shape::Text(text.value().clone()),
        Value::Integer(number) => Shape::Integer(*number.value()),
        Value::Float(number) => Shape::Float(*number.value()),
        Value::Boolean(flag) => Shape::Bool(*flag.value()),
        Value::Datetime(time) => Shape::Text(time.value().to_string()),
        Value::Array(items) => {
            Shape::List(items.iter().map(|item| self::value(item, item.span().unwrap_or_default())).collect())
        }
        Value::InlineTable(table) => Shape::Table(entries(table)),
    };
    Node { span: value.span().unwrap_or_else(|| key.clone()), key, shape }
}
