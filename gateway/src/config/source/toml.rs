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

/// The marks of texts in several lines.
pub(crate) const LONG: [&str; 2] = ["\"\"\"", "'''"];

/// A longer name is not told.
const NAME_MAX: usize = 64;

/// What the parser says of a text without quotes: it takes `npx` for the number `nan`, and `token` for `true`.
const UNQUOTED: [&str; 3] = ["string values must be quoted", "invalid float", "invalid boolean"];

/// Parses `text`; keys keep their order.
pub(crate) fn parse(text: &str) -> Result<Node, Syntax> {
    steps::add(text.len());
    let document = Document::parse(text).map_err(|error| {
        let at = error.span().unwrap_or(0..0);
        if let Some(syntax) = unclosed(text, &at) {
            return syntax;
        }
        match error.message() {
            "duplicate key" => double(text, at),
            said if has_curly(text, &at) && !said.contains("escape") => {
                Syntax { at, text: CURLY.to_owned(), is_name: false }
            }
            said if ["escape", "unicode"].iter().any(|word| said.contains(word)) => {
                Syntax { at, text: BACKSLASH.to_owned(), is_name: false }
            }
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

/// What is said of a backslash in a text that is no escape.
pub(crate) const BACKSLASH: &str =
    "a backslash in \"…\" begins an escape such as \\n: write '…' around the text, or \\\\ for each";
/// What is said of quotes that an editor has made of others.
pub(crate) const CURLY: &str = "these are curly quotes: write straight ones, \"…\"";

/// Whether a curly quote stands there.
fn has_curly(text: &str, at: &Range<usize>) -> bool {
    text.get(at.start..).is_some_and(is_curly)
}

/// Whether a text begins with a curly quote.
pub(crate) fn is_curly(text: &str) -> bool {
    text.starts_with(['\u{2018}', '\u{2019}', '\u{201c}', '\u{201d}', '\u{201e}'])
}

/// The text in quotes that has no end in its line, in the statement of a fault: what follows it is told as a fault only for that.
fn unclosed(text: &str, at: &Range<usize>) -> Option<Syntax> {
    let from = statement(text, at.start);
    let end = text.get(at.start..)?.find('\n').map_or(text.len(), |end| at.start + end);
    let (bytes, mut here) = (text.as_bytes(), from);
    while here < end {
        here += match bytes[here] {
            b'#' => memchr::memchr(b'\n', &bytes[here..]).unwrap_or(bytes.len() - here),
            quote @ (b'"' | b'\'') => {
                let rest = &text[here..];
                let length = quoted(rest);
                if let Some(mark) = LONG.iter().find(|mark| rest.starts_with(**mark) && !rest[3..].contains(**mark)) {
                    let text = format!("a text in several lines begins here, and no {mark} ends it");
                    return Some(Syntax { at: here..here + 3, text, is_name: false });
                }
                if !LONG.iter().any(|mark| rest.starts_with(mark)) && (length < 2 || bytes[here + length - 1] != quote)
                {
                    let text = "a quote is missing in this line: a text in quotes ends in the line in which it begins";
                    return Some(Syntax { at: here..here + length, text: text.to_owned(), is_name: false });
                }
                length
            }
            _ => 1,
        };
    }
    None
}

/// Where the statement begins in which `at` stands: behind the last end of a line that is in no bracket.
pub(crate) fn statement(text: &str, at: usize) -> usize {
    steps::add(at);
    let bytes = text.as_bytes();
    let (mut start, mut open, mut here) = (0, 0_usize, 0);
    while here < bytes.len().min(at) {
        here += match bytes[here] {
            b'#' => memchr::memchr(b'\n', &bytes[here..]).unwrap_or(bytes.len() - here),
            b'"' | b'\'' => quoted(&text[here..]),
            byte => {
                match byte {
                    b'[' | b'{' => open += 1,
                    b']' | b'}' => open = open.saturating_sub(1),
                    b'\n' if open == 0 => start = here + 1,
                    _ => {}
                }
                1
            }
        };
    }
    start
}

/// The bytes of the text in quotes with which `text` begins. One that is in one line ends with it.
pub(crate) fn quoted(text: &str) -> usize {
    if let Some(mark) = LONG.iter().find(|mark| text.starts_with(**mark)) {
        return text[3..].find(mark).map_or(text.len(), |end| 3 + end + 3);
    }
    let bytes = text.as_bytes();
    let mut at = 1;
    while at < bytes.len() && bytes[at] != b'\n' {
        match bytes[at] {
            byte if byte == bytes[0] => return at + 1,
            b'\\' if bytes[0] == b'"' && bytes.get(at + 1).is_some_and(|next| *next != b'\n') => at += 2,
            _ => at += 1,
        }
    }
    at.min(bytes.len())
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
