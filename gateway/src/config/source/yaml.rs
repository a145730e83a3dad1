//! A host's YAML file as a tree of values with their places.

// What is wrong with a text, in plain words.
mod words;

use std::collections::HashMap;
use std::ops::Range;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, Tag};

use super::json::{Syntax, doubled, null_item};
use super::node::{DEPTH_MAX, ENTRIES_MAX, NULL, Node, Shape};
use crate::config::read::nearest::nearest;
use crate::steps;

/// The keys under which hosts keep their servers in YAML: those of Goose and of Continue.
pub(crate) const ROOTS: [&str; 2] = ["extensions", "mcpServers"];

/// Keys that stand in the file of one of these hosts, with servers or without, and of no other program.
const OF_HOSTS: [&str; 2] = ["GOOSE_PROVIDER", "GOOSE_MODEL"];
/// Keys of which a file of Continue has two at least.
const OF_CONTINUE: [&str; 10] =
    ["name", "version", "schema", "models", "rules", "prompts", "docs", "context", "data", "metadata"];

/// What is said of YAML that is no host's file.
const UNLIKE: &str = "this looks like YAML; write TOML or JSON";
/// What is said of YAML that may be the file of a host.
const WITHOUT: &str =
    "expected `extensions` or `mcpServers`: YAML is read as the file of Goose or Continue; other keys need TOML";
/// Keys of our own, of which somebody meant to write a configuration.
const OURS: [&str; 3] = ["upstreams", "server", "defaults"];

/// So many values a text has at most, those that an alias repeats among them.
const VALUES_MAX: usize = 64 * ENTRIES_MAX;

/// A whole text.
#[derive(Debug, Default)]
pub(crate) struct Whole {
    pub(crate) root: Node,
    /// Keys of the outermost table that have no value.
    pub(crate) empty: Vec<(String, Range<usize>)>,
}

/// What a host's file says of its servers, under the keys of the host. All else in the file is the host's, and is not read.
pub(crate) fn parse(text: &str) -> Result<Node, Syntax> {
    let Whole { root, empty } = whole(text)?;
    let is_host = |name: &String| ROOTS.contains(&name.as_str());
    let entries: Vec<_> = root.entries().iter().filter(|(name, _)| is_host(name)).cloned().collect();
    if entries.is_empty() && !empty.iter().any(|(name, _)| is_host(name)) && !is_of_host(&root, &empty) {
        return Err(unlike(text, &root, &empty));
    }
    match entries.iter().find(|(_, node)| node.is_single()) {
        Some((name, node)) => {
            Err(Syntax::new(node.key.clone(), format!("`{name}` must be a table or a list of servers")))
        }
        None => {
            let entries = entries.into_iter().map(|(name, servers)| (name, as_written(servers, text, 0))).collect();
            Ok(Node { shape: Shape::Table(entries), ..Node::default() })
        }
    }
}

/// The servers; in a table of one of them, such as that of its variables, a number or a flag is the text that is written there: `1.0` is a
/// version and `0x10` no 16.
fn as_written(node: Node, text: &str, depth: usize) -> Node {
    let shape = match node.shape {
        Shape::Table(entries) => {
            Shape::Table(entries.into_iter().map(|(name, node)| (name, as_written(node, text, depth + 1))).collect())
        }
        // The servers of Continue have their names inside.
        Shape::List(items) if depth == 0 => {
            Shape::List(items.into_iter().map(|node| as_written(node, text, 1)).collect())
        }
        shape @ (Shape::Bool(_) | Shape::Integer(_) | Shape::Float(_)) if depth > 2 => {
            match text.get(node.span.clone()).filter(|text| !text.is_empty() && !text.starts_with(['*', '\'', '"'])) {
                Some(written) => Shape::Text(written.to_owned()),
                // An alias, or quotes under a tag.
                None => shape,
            }
        }
        shape => shape,
    };
    Node { shape, ..node }
}

/// All keys of the outermost table, with their places.
fn keys<'a>(root: &'a Node, empty: &'a [(String, Range<usize>)]) -> impl Iterator<Item = (&'a str, &'a Range<usize>)> {
    let full = root.entries().iter().map(|(name, node)| (name.as_str(), &node.key));
    full.chain(empty.iter().map(|(name, key)| (name.as_str(), key)))
}

/// Whether it is the file of a host that has no servers yet.
fn is_of_host(root: &Node, empty: &[(String, Range<usize>)]) -> bool {
    let count = |known: &[&str]| keys(root, empty).filter(|(name, _)| known.contains(name)).count();
    count(&OF_HOSTS) > 0 || count(&OF_CONTINUE) > 1 && root.get("schema").is_some()
}

/// Why YAML is not read that is no host's file.
fn unlike(text: &str, root: &Node, empty: &[(String, Range<usize>)]) -> Syntax {
    let meant = keys(root, empty).find_map(|(name, key)| Some((name, key, nearest(name, &ROOTS)?)));
    if let Some((name, key, meant)) = meant {
        let text = format!("`{name}` is not a key of a host's file; did you mean `{meant}`?");
        return Syntax { is_name: true, ..Syntax::new(key.clone(), text) };
    }
    let is_ours = keys(root, empty).any(|(name, _)| OURS.contains(&name));
    let first = 0..text.find('\n').unwrap_or(text.len());
    Syntax { is_without_servers: !is_ours, ..Syntax::new(first, if is_ours { UNLIKE } else { WITHOUT }) }
}

/// Everything in a text.
pub(crate) fn whole(text: &str) -> Result<Whole, Syntax> {
    steps::add(text.len());
    let mut reader = Reader { text, bytes: bytes(text), ..Reader::default() };
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| reader.said(&error))?;
        if event == Event::StreamEnd {
            break;
        }
        reader.take(event, span)?;
    }
    // Nothing but comments is a table without keys.
    let root = reader.done.unwrap_or_default();
    match root.shape {
        Shape::Table(_) => Ok(Whole { root, empty: reader.empty }),
        shape => Err(Syntax::new(root.span, if matches!(shape, Shape::List(_)) { UNLIKE } else { WITHOUT })),
    }
}

/// Where each character begins, in bytes; nothing where each is one byte.
fn bytes(text: &str) -> Vec<usize> {
    match text.is_ascii() {
        true => Vec::new(),
        false => text.char_indices().map(|(at, _)| at).collect(),
    }
}

/// A value that has begun.
#[derive(Debug)]
struct Open {
    node: Node,
    anchor: usize,
    /// Of a table: the key whose value comes.
    key: Option<(String, Range<usize>)>,
    /// Of a table: its keys, each with its place in the text.
    known: HashMap<String, usize>,
    /// Why the value that comes is none: its key stands there a second time.
    doubled: Option<String>,
}

#[derive(Debug, Default)]
struct Reader<'a> {
    text: &'a str,
    bytes: Vec<usize>,
    open: Vec<Open>,
    done: Option<Node>,
    documents: usize,
    /// The values that have a name, and how many values each has in it.
    anchors: HashMap<usize, (Node, usize)>,
    values: usize,
    empty: Vec<(String, Range<usize>)>,
}

impl Reader<'_> {
    fn place(&self, span: Span) -> Range<usize> {
        let at = |index: usize| match self.bytes.is_empty() {
            true => index.min(self.text.len()),
            false => self.bytes.get(index).copied().unwrap_or(self.text.len()),
        };
        at(span.start.index())..at(span.end.index())
    }

    fn said(&self, error: &ScanError) -> Syntax {
        let at = self.place(Span::empty(*error.marker())).start;
        words::said(self.text, at, error.info())
    }

    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Syntax> {
        let at = self.place(span);
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                match self.documents {
                    1 => Ok(()),
                    _ => Err(Syntax::new(at, "more than one document in a file")),
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                let shape = scalar(&text, style, tag.as_deref());
                self.counts(1, &at)?;
                match shape {
                    Some(shape) => {
                        let node = Node { key: at.clone(), span: self.trimmed(at), shape };
                        self.named(anchor, &node, 1);
                        self.put(node)
                    }
                    None => self.put_nothing(at),
                }
            }
            Event::Alias(anchor) => {
                let Some((node, count)) = self.anchors.get(&anchor).cloned() else {
                    return Err(Syntax::new(at, "an alias of a value without an end, or of none"));
                };
                self.counts(count, &at)?;
                self.put(Node { key: at.clone(), span: at, ..node })
            }
            Event::SequenceStart(anchor, _) => self.begin(Shape::List(Vec::new()), anchor, at),
            Event::MappingStart(anchor, _) => self.begin(Shape::Table(Vec::new()), anchor, at),
            Event::SequenceEnd | Event::MappingEnd => self.end(at),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
        }
    }

    /// What ends in line breaks or blanks ends before them.
    fn trimmed(&self, at: Range<usize>) -> Range<usize> {
        let piece = self.text.get(at.clone()).unwrap_or_default();
        at.start..at.start + piece.trim_end().len()
    }

    fn counts(&mut self, count: usize, at: &Range<usize>) -> Result<(), Syntax> {
        self.values += count;
        steps::add(count);
        match self.values > VALUES_MAX {
            true => Err(Syntax::new(at.clone(), format!("more than {VALUES_MAX} values"))),
            false => Ok(()),
        }
    }

    fn named(&mut self, anchor: usize, node: &Node, count: usize) {
        if anchor > 0 {
            self.anchors.insert(anchor, (node.clone(), count));
        }
    }

    fn begin(&mut self, shape: Shape, anchor: usize, at: Range<usize>) -> Result<(), Syntax> {
        self.counts(1, &at)?;
        if self.open.len() >= DEPTH_MAX {
            return Err(Syntax::new(at, "nested too deep"));
        }
        // What has no brackets has no end of its own: that of its last value is its end.
        let span = at.start..self.trimmed(at.clone()).end;
        let node = Node { key: at, span, shape };
        self.open.push(Open { node, anchor, key: None, known: HashMap::new(), doubled: None });
        Ok(())
    }

    fn end(&mut self, at: Range<usize>) -> Result<(), Syntax> {
        let Some(mut open) = self.open.pop() else { return Ok(()) };
        if self.text.get(at.clone()).is_some_and(|end| end == "}" || end == "]") {
            open.node.span.end = at.end;
        }
        self.named(open.anchor, &open.node, count(&open.node));
        self.put(open.node)
    }

    /// A value without a text: a key has none then, and no value can be made of an item of a list.
    fn put_nothing(&mut self, at: Range<usize>) -> Result<(), Syntax> {
        let is_root = self.open.len() == 1;
        if let [.., above, Open { node: Node { shape: Shape::List(items), .. }, .. }] = &self.open[..] {
            let why = null_item(items.len(), above.key.as_ref().map(|(name, _)| name.as_str()));
            return self.put(Node { key: at.clone(), span: at, shape: Shape::Broken(why) });
        }
        // A server is not left away in silence.
        if let [Open { key: Some((root, _)), .. }, Open { key: Some((_, key)), .. }] = &self.open[..]
            && ROOTS.contains(&root.as_str())
        {
            let key = key.clone();
            return self.put(Node { span: key.clone(), key, shape: Shape::Broken(NULL.to_owned()) });
        }
        let Some(open) = self.open.last_mut() else { return Ok(()) };
        match (&mut open.node.shape, open.key.take()) {
            (Shape::Table(entries), Some((name, key))) => {
                open.node.span.end = open.node.span.end.max(key.end);
                if let Some(why) = open.doubled.take() {
                    breaks(entries, &name, key, why);
                } else if is_root {
                    self.empty.push((name, key));
                }
                Ok(())
            }
            (Shape::Table(_), None) => Err(Syntax::new(at, NO_TEXT)),
            _ => Ok(()),
        }
    }

    fn put(&mut self, node: Node) -> Result<(), Syntax> {
        let is_root = self.open.len() == 1;
        let Some(open) = self.open.last_mut() else {
            self.done = Some(node);
            return Ok(());
        };
        open.node.span.end = open.node.span.end.max(node.span.end);
        match (&mut open.node.shape, open.key.take()) {
            (Shape::List(items), _) if items.len() < ENTRIES_MAX => items.push(node),
            (Shape::Table(entries), Some((name, key))) if entries.len() < ENTRIES_MAX => match open.doubled.take() {
                Some(why) => breaks(entries, &name, key, why),
                None => {
                    // An empty text in several lines stands nowhere.
                    let span = if node.span.is_empty() { key.clone() } else { node.span };
                    entries.push((name, Node { key, span, ..node }));
                }
            },
            (Shape::Table(_), None) => {
                let Some(name) = word(&node, self.text) else {
                    return Err(Syntax::new(node.span, NO_TEXT));
                };
                if let Some(first) = open.known.insert(name.clone(), node.span.start) {
                    let why = doubled(self.text, &name, first);
                    // One of two lists of servers cannot be left out alone.
                    if is_root && ROOTS.contains(&name.as_str()) {
                        return Err(Syntax::new(node.span, why));
                    }
                    open.doubled = Some(why);
                }
                open.key = Some((name, node.span));
            }
            _ => return Err(Syntax::new(node.key, format!("more than {ENTRIES_MAX} entries"))),
        }
        Ok(())
    }
}

const NO_TEXT: &str = "a key must be a text";

/// A member whose key stands twice has no value: nobody can say which is meant.
fn breaks(entries: &mut Vec<(String, Node)>, name: &str, key: Range<usize>, why: String) {
    let node = Node { span: key.clone(), key, shape: Shape::Broken(why) };
    match entries.iter_mut().find(|(known, _)| known == name) {
        Some((_, first)) => *first = node,
        // The first one was null.
        None => entries.push((name.to_owned(), node)),
    }
}

/// A key as it is written.
fn word(node: &Node, text: &str) -> Option<String> {
    match &node.shape {
        Shape::Text(name) => Some(name.clone()),
        Shape::List(_) | Shape::Table(_) => None,
        _ => text.get(node.span.clone()).map(str::to_owned),
    }
}

/// How many values a value has in it, itself among them.
fn count(node: &Node) -> usize {
    1 + match &node.shape {
        Shape::List(items) => items.iter().map(count).sum(),
        Shape::Table(entries) => entries.iter().map(|(_, node)| count(node)).sum(),
        _ => 0,
    }
}

/// What a scalar is by the core schema of YAML 1.2; `None`: null.
fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Option<Shape> {
    let is_resolved = match tag {
        None => style == ScalarStyle::Plain,
        Some(tag) => tag.is_yaml_core_schema() && tag.suffix != "str",
    };
    if !is_resolved {
        return Some(Shape::Text(text.to_owned()));
    }
    Some(match text {
        "" | "~" | "null" | "Null" | "NULL" => return None,
        "true" | "True" | "TRUE" => Shape::Bool(true),
        "false" | "False" | "FALSE" => Shape::Bool(false),
        text => match integer(text).map(Shape::Integer).or_else(|| float(text).map(Shape::Float)) {
            Some(shape) => shape,
            None => Shape::Text(text.to_owned()),
        },
    })
}

fn integer(text: &str) -> Option<i64> {
    match text.split_at_checked(2) {
        Some(("0x", digits)) => i64::from_str_radix(digits, 16).ok(),
        Some(("0o", digits)) => i64::from_str_radix(digits, 8).ok(),
        // Of digits behind a nought hosts make no number.
        _ if is_behind_nought(text) => None,
        _ => text.parse().ok(),
    }
}

fn is_behind_nought(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn float(text: &str) -> Option<f64> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_number = !is_behind_nought(text)
        && digits.starts_with(|char: char| char.is_ascii_digit() || char == '.')
        && digits.bytes().any(|byte| byte.is_ascii_digit())
        && digits.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    is_number.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests;
