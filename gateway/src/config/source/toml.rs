//! A TOML file as a tree of values with their places.

use std::ops::Range;

use toml_edit::{Document, Item, Table, TableLike, Value};

use crate::steps;

use super::node::{DEPTH_MAX, ENTRIES_MAX, Node, Shape};

/// A syntax error and where it stands.
pub(crate) struct Syntax {
    pub(crate) at: Range<usize>,
    pub(crate) text: String,
    /// Whether what stands there is the name of a key, and no part of a value.
    pub(crate) is_name: bool,
}

/// A longer name is not told.
const NAME_MAX: usize = 64;

/// What the parser says of a text without quotes: it takes `npx` for the number `nan`, and `token` for `true`.
const UNQUOTED: [&str; 3] = ["string values must be quoted", "invalid float", "invalid boolean"];

/// Parses `text`; keys keep their order.
pub(crate) fn parse(text: &str) -> Result<Node, Syntax> {
    steps::add(text.len());
    let document = Document::parse(text).map_err(|error| {
        let at = error.span().unwrap_or(0..0);
        match error.message() {
            "duplicate key" => double(text, at),
            said if UNQUOTED.iter().any(|unquoted| said.contains(unquoted)) && begins_with_letter(text, &at) => {
                unquoted(text, at)
            }
            _ => Syntax { at, text: error.message().lines().collect::<Vec<_>>().join(", "), is_name: false },
        }
    })?;
    let root = table(document.as_table(), 0..0);
    match excess(&root, 0) {
        Some((at, text)) => Err(Syntax { at, text, is_name: false }),
        None => Ok(root),
    }
}

/// Where more stands, or deeper, than any configuration needs.
fn excess(node: &Node, depth: usize) -> Option<(Range<usize>, String)> {
    let count = match &node.shape {
        Shape::Table(entries) => entries.len(),
        Shape::List(items) => items.len(),
        _ => return None,
    };
    if depth > DEPTH_MAX {
        return Some((node.span.clone(), "nested too deep".to_owned()));
    }
    if count > ENTRIES_MAX {
        return Some((node.key.clone(), format!("more than {ENTRIES_MAX} entries")));
    }
    match &node.shape {
        Shape::Table(entries) => entries.iter().find_map(|(_, node)| excess(node, depth + 1)),
        Shape::List(items) => items.iter().find_map(|node| excess(node, depth + 1)),
        _ => None,
    }
}

fn begins_with_letter(text: &str, at: &Range<usize>) -> bool {
    let value = text.get(..at.end).unwrap_or_default().rsplit(['=', ',', '[', '{', '\n']).next().unwrap_or_default();
    value.trim_start().starts_with(|char: char| char.is_alphanumeric() || "/.~@_-$".contains(char))
}

/// A text that stands without its quotes: of which key. The text itself may be a secret.
fn unquoted(text: &str, at: Range<usize>) -> Syntax {
    let line = text.get(..at.start).unwrap_or_default().rsplit('\n').next().unwrap_or_default();
    let key = line.split_once('=').map_or("", |(key, _)| key).trim();
    let is_plain = (1..=NAME_MAX).contains(&key.len())
        && key.chars().all(|char| char.is_ascii_alphanumeric() || "-_.".contains(char));
    let whose = if is_plain { format!("the value of `{key}`") } else { "this text".to_owned() };
    Syntax { at, text: format!("{whose} needs quotes: \"…\""), is_name: false }
}

/// A key or a table that stands twice: which, and in which table.
fn double(text: &str, at: Range<usize>) -> Syntax {
    let is_plain = |name: &str, more: &str| {
        (1..=NAME_MAX).contains(&name.len())
            && name.chars().all(|char| char.is_ascii_alphanumeric() || "-_.".contains(char) || more.contains(char))
    };
    let name = text.get(at.clone()).unwrap_or_default().trim();
    let before = text.get(..at.start).unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default().trim_start();
    if !is_plain(name, "") {
        return Syntax { at, text: "duplicate key".to_owned(), is_name: false };
    }
    if line.starts_with("[[") {
        let text = format!(
            "[[{name}]] stands beside [{name}] or a part of it; write [{name}.NAME], with single brackets, for each"
        );
        return Syntax { at, text, is_name: true };
    }
    if line.starts_with('[') {
        let whole = format!("{}{name}]", line.trim_start_matches('['));
        let whole = whole.strip_suffix(']').filter(|whole| is_plain(whole, "")).unwrap_or(name);
        return Syntax { at, text: format!("the table [{whole}] is defined twice; join the two"), is_name: true };
    }
    let heading = before.lines().rev().map(str::trim).find(|line| line.starts_with('['));
    let heading = heading.map(|line| line.split_inclusive(']').next().unwrap_or(line));
    let place = heading.filter(|heading| is_plain(heading, "[]")).map(|heading| format!(" in {heading}"));
    Syntax { at, text: format!("the key `{name}` is defined twice{}", place.unwrap_or_default()), is_name: true }
}

/// Whether a text that is not TOML is YAML: by its first line that is no comment.
pub(crate) fn is_yaml(text: &str) -> bool {
    let first =
        text.lines().map(str::trim_end).find(|line| !line.is_empty() && !line.starts_with('#')).unwrap_or_default();
    let is_key =
        |key: &str| !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-\"".contains(&byte));
    first == "---"
        || first.starts_with("- ")
        || first.split_once(':').is_some_and(|(key, rest)| is_key(key) && (rest.is_empty() || rest.starts_with(' ')))
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
