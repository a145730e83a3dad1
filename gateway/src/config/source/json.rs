//! A host's JSON file as a tree of values with their places; comments and trailing commas are taken.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::comments::{string_length, without_comments};
use super::node::{DEPTH_MAX, ENTRIES_MAX, NULL, Node, Shape};
use super::toml::{CURLY, is_curly};
use crate::config::read::nearest::nearest;
use crate::steps;

/// Why a text is not read, and where that stands.
pub(crate) struct Syntax {
    pub(crate) at: Range<usize>,
    pub(crate) text: String,
    /// Whether the text is well written, and has no servers in it.
    pub(crate) is_without_servers: bool,
    /// Whether the name of a key stands there that is known, and so no secret.
    pub(crate) is_name: bool,
    /// Whether the text ends too early or too late: one brace more or less, wherever it is, has this fault.
    pub(crate) is_end: bool,
}

impl Syntax {
    pub(crate) fn new(at: Range<usize>, text: impl Into<String>) -> Self {
        Self { at, text: text.into(), is_without_servers: false, is_name: false, is_end: false }
    }
}

/// The keys under which hosts keep their servers, and what belongs to those.
pub(crate) const ROOTS: [&str; 7] =
    ["mcpServers", "servers", "context_servers", "mcp", "amp.mcpServers", "inputs", "projects"];

/// Keys that stand beside the servers in the settings of Gemini CLI, and of no other host.
pub(crate) const OF_GEMINI: [&str; 4] =
    ["selectedAuthType", "security", "contextFileName", "hasSeenIdeIntegrationNudge"];

/// What a host's file says of its servers, under the keys of the host. All else in the file is the host's, and is not read.
pub(crate) fn parse(text: &str) -> Result<Node, Syntax> {
    let plain = without_comments(text);
    let start = plain.len() - plain.trim_start().len();
    if !plain[start..].starts_with(['{', '\'']) && start < plain.len() {
        return Err(Syntax::new(start..start + 1, "the file of a host is an object: it begins with `{`"));
    }
    let root: Object<'_> = from_str(&plain, &plain)?;
    let mut entries: Vec<(String, Node)> = Vec::new();
    for (name, raw) in root.0.iter().filter(|(name, _)| ROOTS.contains(&name.as_str())) {
        let key = key_span(&plain, name, raw);
        if let Some((_, first)) = entries.iter().find(|(known, _)| known == name) {
            return Err(Syntax { is_name: true, ..Syntax::new(key, doubled(&plain, name, first.key.start)) });
        }
        if name != "inputs" && !raw.get().starts_with(['{', 'n']) {
            let at = span_in(&plain, raw.get());
            return Err(Syntax::new(at.start..at.start + 1, format!("`{name}` must be an object")));
        }
        let found = match name.as_str() {
            "projects" => projects(&plain, raw, key)?,
            "mcp" => of_mcp(&plain, raw, key),
            _ => node(&plain, raw, key, 0),
        };
        if let (Shape::Broken(why), true) = (&found.shape, raw.get() != "null") {
            return Err(Syntax::new(found.span, why.as_str()));
        }
        entries.push((name.clone(), found));
    }
    entries.retain(|(_, node)| !matches!(node.shape, Shape::Broken(_)));
    if entries.iter().any(|(name, _)| name != "inputs") {
        let marks = root.0.iter().filter(|(name, _)| OF_GEMINI.contains(&name.as_str()));
        entries.extend(marks.map(|(name, _)| (name.clone(), Node::default())));
        return Ok(Node { shape: Shape::Table(entries), ..Node::default() });
    }
    let names: Vec<&str> = root.0.iter().map(|(name, _)| name.as_str()).collect();
    let meant = root.0.iter().find_map(|(name, raw)| {
        let meant = nearest(name, &ROOTS).filter(|_| raw.get().starts_with('{'))?;
        Some((key_span(&plain, name, raw), format!("`{name}` is not a key of a host's file; did you mean `{meant}`?")))
    });
    Err(match meant {
        Some((at, text)) => Syntax { is_name: true, ..Syntax::new(at, text) },
        None => Syntax { is_without_servers: !names.contains(&"upstreams"), ..Syntax::new(0..1, unlike(&names)) },
    })
}

/// What is said of an object that is no host's file.
fn unlike(names: &[&str]) -> String {
    match names.contains(&"upstreams") {
        true => "JSON is read as the file of a host, with `mcpServers`; write `upstreams` in TOML".to_owned(),
        false => {
            "expected an object `mcpServers` or `servers`: JSON is read as the file of a host; other keys need TOML"
                .to_owned()
        }
    }
}

/// Of each project its servers alone: what else a host keeps of them is long.
fn projects(text: &str, raw: &RawValue, key: Range<usize>) -> Result<Node, Syntax> {
    let span = span_in(text, raw.get());
    let mut found = Vec::new();
    let all: Object<'_> = if raw.get().starts_with('{') { from_str(text, raw.get())? } else { Object(Vec::new()) };
    for (name, raw) in all.0.into_iter().filter(|(_, raw)| raw.get().starts_with('{')) {
        let project: Object<'_> = from_str(text, raw.get())?;
        let servers = project.0.iter().find(|(key, raw)| key == "mcpServers" && raw.get() != "null");
        if let Some((_, servers)) = servers {
            found.push((name.clone(), node(text, servers, key_span(text, &name, raw), 0)));
        }
    }
    Ok(Node { key, span, shape: Shape::Table(found) })
}

/// `mcp`: its members are settings, or servers; VS Code has its servers under `servers` there.
fn of_mcp(text: &str, raw: &RawValue, key: Range<usize>) -> Node {
    let mut found = node(text, raw, key, 1);
    let object = from_str::<Object<'_>>(text, raw.get()).unwrap_or(Object(Vec::new())).0;
    let servers = object.iter().find(|(name, raw)| name == "servers" && raw.get().starts_with('{'));
    if let (Shape::Table(entries), Some((_, raw))) = (&mut found.shape, servers) {
        let own = entries.iter_mut().filter(|(name, node)| name == "servers" && node.broken().is_none());
        own.for_each(|(_, servers)| *servers = node(text, raw, servers.key.clone(), 0));
    }
    found
}

/// An object in file order; the values are pieces of the text.
struct Object<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Object<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries: Vec<(String, &RawValue)> = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
                    if entries.len() >= ENTRIES_MAX {
                        return Err(serde::de::Error::custom(format!("more than {ENTRIES_MAX} keys")));
                    }
                    entries.push((key, value));
                }
                Ok(Object(entries))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

/// What is said of a name that stands twice in an object.
pub(super) fn doubled(text: &str, name: &str, first: usize) -> String {
    let line = memchr::memchr_iter(b'\n', &text.as_bytes()[..first]).count() + 1;
    format!("the key `{name}` is defined twice, first in line {line}")
}

/// One value. `raw` is a piece of `text`, so its place is the distance of their beginnings. What cannot be read says why, and all around
/// it is read: it may belong to one server of many, or to none.
fn node(text: &str, raw: &RawValue, key: Range<usize>, depth: usize) -> Node {
    match shape(text, raw, &key, depth) {
        Ok(shape) => Node { key, span: span_in(text, raw.get()), shape },
        Err(Syntax { at, text, .. }) => Node { key, span: at, shape: Shape::Broken(text) },
    }
}

fn shape(text: &str, raw: &RawValue, key: &Range<usize>, depth: usize) -> Result<Shape, Syntax> {
    let span = span_in(text, raw.get());
    if depth > DEPTH_MAX {
        return Err(Syntax::new(span, "nested too deep"));
    }
    Ok(match raw.get().as_bytes().first() {
        Some(b'{') => Shape::Table(members(text, from_str(text, raw.get())?, depth)),
        Some(b'[') => {
            let items: Vec<&RawValue> = from_str(text, raw.get())?;
            if items.len() > ENTRIES_MAX {
                return Err(Syntax::new(span, format!("more than {ENTRIES_MAX} items")));
            }
            let mut list: Vec<Node> =
                items.iter().map(|raw| node(text, raw, span_in(text, raw.get()), depth + 1)).collect();
            let name = text.get(key.clone()).unwrap_or_default().trim_matches('"');
            for (index, node) in list.iter_mut().enumerate().filter(|(index, _)| items[*index].get() == "null") {
                node.shape = Shape::Broken(null_item(index, Some(name).filter(|name| !name.starts_with('['))));
            }
            Shape::List(list)
        }
        Some(b'"') => Shape::Text(from_str(text, raw.get())?),
        Some(b't' | b'f') => Shape::Bool(from_str(text, raw.get())?),
        Some(b'n') => Shape::Broken(NULL.to_owned()),
        _ => match serde_json::from_str::<i64>(raw.get()) {
            Ok(number) => Shape::Integer(number),
            Err(_) => Shape::Float(from_str(text, raw.get())?),
        },
    })
}

/// The members of an object. One whose name stands twice has no value: nobody can say which is meant.
fn members(text: &str, object: Object<'_>, depth: usize) -> Vec<(String, Node)> {
    let mut entries: Vec<(String, Node)> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    // A member that is null is as one that is not there; but a server is not left away in silence.
    for (name, raw) in object.0.into_iter().filter(|(_, raw)| depth == 0 || raw.get() != "null") {
        let key = key_span(text, &name, raw);
        match known.get(&name) {
            Some(index) => {
                let (_, first) = &mut entries[*index];
                let shape = Shape::Broken(doubled(text, &name, first.key.start));
                *first = Node { span: key.clone(), key, shape };
            }
            None => {
                known.insert(name.clone(), entries.len());
                entries.push((name, node(text, raw, key, depth + 1)));
            }
        }
    }
    entries
}

/// What is said of an item of a list that is null: of the list with this name.
pub(super) fn null_item(index: usize, name: Option<&str>) -> String {
    let list = name.filter(|name| !name.is_empty()).map_or_else(|| "a list".to_owned(), |name| format!("`{name}`"));
    format!("item {} of {list} is null", index + 1)
}

/// What is said of a text in the quotes of JavaScript.
const SINGLE: &str = "JSON has double quotes: write \"…\" instead of '…'";

/// What is said of a text with an end of a line in it.
const OPEN: &str =
    "a text does not end in its line: its closing quote is missing; in a text an end of line is \\n, a tab \\t";

fn from_str<'a, T: Deserialize<'a>>(text: &str, piece: &'a str) -> Result<T, Syntax> {
    steps::add(piece.len());
    serde_json::from_str(piece).map_err(|error| {
        let start = span_in(text, piece).start;
        let line: usize = piece.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
        let at = (start + line + error.column().saturating_sub(1)).min(text.len());
        // The position is shown by the excerpt; serde_json's own would be that of the piece.
        let said = error.to_string();
        let said = said.split(" at line ").next().unwrap_or_default().to_owned();
        let behind = text.get(at..).unwrap_or_default();
        let is_end = error.is_eof() || said == "trailing characters";
        let said = match () {
            () if error.is_eof() => missing_end(text),
            // The position is that of the quote, or right behind it.
            () if is_curly(behind) => CURLY.to_owned(),
            () if text.as_bytes()[at.saturating_sub(1)..].iter().take(2).any(|byte| *byte == b'\'') => {
                SINGLE.to_owned()
            }
            () if said == "expected value" => {
                "a value is missing: a text in double quotes, a number, `true`, `[` or `{`".to_owned()
            }
            () if said == "invalid escape" => {
                "a backslash in a text begins an escape such as \\n: write \\\\ for each".to_owned()
            }
            () if said.starts_with("control character") => OPEN.to_owned(),
            () if behind.starts_with('#') => "JSON has no comments with `#`: write `//`".to_owned(),
            () if said == "key must be a string" => "a name needs double quotes: \"name\": …".to_owned(),
            () if said == "trailing characters" && behind.starts_with('{') => {
                "the file goes on behind its end with another `{`: put all of it into one object".to_owned()
            }
            () if said == "trailing characters" => "the file goes on behind its end: a `}` is too many".to_owned(),
            () if said.ends_with("hex escape") => "an escape `\\u` in it is half of a character".to_owned(),
            () => said,
        };
        Syntax { is_end, ..Syntax::new(at..at + 1, said) }
    })
}

/// What a text lacks that ends within a value.
fn missing_end(text: &str) -> String {
    match unclosed(text) {
        _ if text.trim().is_empty() => "the file is empty; write { \"mcpServers\": {} }".to_owned(),
        Some(closing) => format!("the file ends too early: a `{closing}` is missing"),
        None => "the file ends too early".to_owned(),
    }
}

/// What would close the innermost text, list or object that is open at the end of a text.
pub(crate) fn unclosed(text: &str) -> Option<char> {
    let (mut at, mut open) = (0, Vec::new());
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        let length = if rest[0] == b'"' { string_length(rest) } else { 1 };
        match rest[0] {
            b'"' if length < 2 || rest[length - 1] != b'"' => open.push('"'),
            b'{' => open.push('}'),
            b'[' => open.push(']'),
            b'}' | b']' => drop(open.pop()),
            _ => {}
        }
        at += length;
    }
    open.pop()
}

fn span_in(text: &str, piece: &str) -> Range<usize> {
    let start = (piece.as_ptr() as usize).saturating_sub(text.as_ptr() as usize).min(text.len());
    start..(start + piece.len()).min(text.len())
}

/// The place of a key: the text in quotes right before its value; an empty one where it is written with
/// escapes.
fn key_span(text: &str, key: &str, raw: &RawValue) -> Range<usize> {
    let value = span_in(text, raw.get()).start;
    let quoted = format!("\"{key}\"");
    let before = text[..value].trim_end().strip_suffix(':').map(str::trim_end);
    match before.and_then(|before| before.strip_suffix(&quoted)) {
        Some(rest) => rest.len()..rest.len() + quoted.len(),
        None => value..value,
    }
}

#[cfg(test)]
mod tests;
