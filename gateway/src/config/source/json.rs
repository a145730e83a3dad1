//! A host's JSON file as a tree of values with their places; comments and trailing commas are taken.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::node::{DEPTH_MAX, ENTRIES_MAX, Node, Shape};
use crate::config::read::nearest::nearest;
use crate::steps;

/// A syntax error and where it stands.
pub(crate) struct Syntax {
    pub(crate) at: Range<usize>,
    pub(crate) text: String,
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
    let root: Object<'_> = from_str(&plain, &plain)?;
    root.refuse_doubles(&plain)?;
    let mut entries = Vec::new();
    for (name, raw) in root.0.iter().filter(|(name, raw)| ROOTS.contains(&name.as_str()) && raw.get() != "null") {
        let key = key_span(&plain, name, raw);
        if name != "inputs" && !raw.get().starts_with('{') {
            let at = span_in(&plain, raw.get());
            return Err(Syntax { at: at.start..at.start + 1, text: format!("`{name}` must be an object") });
        }
        let found = match name.as_str() {
            "projects" => projects(&plain, raw, key)?,
            _ => node(&plain, raw, key, 0)?,
        };
        entries.push((name.clone(), found));
    }
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
    let (at, text) = meant.unwrap_or_else(|| (0..1, unlike(&names)));
    Err(Syntax { at, text })
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
            found.push((name.clone(), node(text, servers, key_span(text, &name, raw), 1)?));
        }
    }
    Ok(Node { key, span, shape: Shape::Table(found) })
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

impl Object<'_> {
    /// Refuses a name that stands twice, at its second place.
    fn refuse_doubles(&self, text: &str) -> Result<(), Syntax> {
        let mut known: HashMap<&str, &RawValue> = HashMap::new();
        for (name, raw) in &self.0 {
            let Some(first) = known.insert(name, raw) else { continue };
            let at = key_span(text, name, raw);
            let before = key_span(text, name, first).start;
            let line = memchr::memchr_iter(b'\n', &text.as_bytes()[..before]).count() + 1;
            return Err(Syntax { at, text: format!("the key `{name}` is defined twice, first in line {line}") });
        }
        Ok(())
    }
}

/// One value. `raw` is a piece of `text`, so its place is the distance of their beginnings.
fn node(text: &str, raw: &RawValue, key: Range<usize>, depth: usize) -> Result<Node, Syntax> {
    let span = span_in(text, raw.get());
    if depth > DEPTH_MAX {
        return Err(Syntax { at: span, text: "nested too deep".to_owned() });
    }
    let shape = match raw.get().as_bytes().first() {
        Some(b'{') => {
            let object: Object<'_> = from_str(text, raw.get())?;
            object.refuse_doubles(text)?;
            let mut entries = Vec::new();
            for (name, raw) in object.0.into_iter().filter(|(_, raw)| raw.get() != "null") {
                let key = key_span(text, &name, raw);
                entries.push((name, node(text, raw, key, depth + 1)?));
            }
            Shape::Table(entries)
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = from_str(text, raw.get())?;
            if items.len() > ENTRIES_MAX {
                return Err(Syntax { at: span, text: format!("more than {ENTRIES_MAX} items") });
            }
            let item = |raw: &&RawValue| node(text, raw, span_in(text, raw.get()), depth + 1);
            Shape::List(items.iter().map(item).collect::<Result<_, _>>()?)
        }
        Some(b'"') => Shape::Text(from_str(text, raw.get())?),
        Some(b't' | b'f') => Shape::Bool(from_str(text, raw.get())?),
        _ => match serde_json::from_str::<i64>(raw.get()) {
            Ok(number) => Shape::Integer(number),
            Err(_) => Shape::Float(from_str(text, raw.get())?),
        },
    };
    Ok(Node { key, span, shape })
}

/// What is said of a text in the quotes of JavaScript.
const SINGLE: &str = "JSON has double quotes: write \"…\" instead of '…'";

fn from_str<'a, T: Deserialize<'a>>(text: &str, piece: &'a str) -> Result<T, Syntax> {
    steps::add(piece.len());
    serde_json::from_str(piece).map_err(|error| {
        let start = span_in(text, piece).start;
        let line: usize = piece.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
        let at = (start + line + error.column().saturating_sub(1)).min(text.len());
        // The position is shown by the excerpt; serde_json's own would be that of the piece.
        let said = error.to_string();
        let said = said.split(" at line ").next().unwrap_or_default().to_owned();
        let said = match () {
            () if error.is_eof() => missing_end(text),
            // The position is that of the quote, or right behind it.
            () if text.as_bytes()[at.saturating_sub(1)..].iter().take(2).any(|byte| *byte == b'\'') => {
                SINGLE.to_owned()
            }
            () => said,
        };
        Syntax { at: at..at + 1, text: said }
    })
}

/// What a text lacks that ends within a value.
fn missing_end(text: &str) -> String {
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
    match open.last() {
        _ if text.trim().is_empty() => "the file is empty; write { \"mcpServers\": {} }".to_owned(),
        Some(closing) => format!("the file ends too early: a `{closing}` is missing"),
        None => "the file ends too early".to_owned(),
    }
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

/// Comments and trailing commas as spaces, so that every place stays what it was.
fn without_comments(text: &str) -> String {
    let mut out = text.as_bytes().to_vec();
    steps::add(out.len());
    let (mut at, mut comma) = (0, None);
    while at < out.len() {
        let rest = &text.as_bytes()[at..];
        let (length, blank) = match rest[0] {
            b'"' => (string_length(rest), false),
            b'/' if rest.starts_with(b"//") => (memchr::memchr(b'\n', rest).unwrap_or(rest.len()), true),
            b'/' if rest.starts_with(b"/*") => {
                (memchr::memmem::find(&rest[2..], b"*/").map_or(rest.len(), |end| end + 4), true)
            }
            _ => (1, false),
        };
        match rest[0] {
            _ if blank => out[at..at + length].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' '),
            b',' => comma = Some(at),
            b']' | b'}' => {
                if let Some(comma) = comma.take() {
                    out[comma] = b' ';
                }
            }
            byte if byte.is_ascii_whitespace() => {}
            _ => comma = None,
        }
        at += length;
    }
    // Only whole comments and single ASCII bytes were replaced, so it is UTF-8 still.
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

fn string_length(text: &[u8]) -> usize {
    let mut at = 1;
    while at < text.len() && text[at] != b'"' {
        at += if text[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_where_they_stand() {
        let text = "// é\n{ \"x\": 1, \"servers\": {\n  \"a.b\": { \"command\": \"npx\", /* , } */ \"args\": [\"//x\", 2.5, true,], },\n} }";
        let root = parse(text).map_err(|fault| fault.text).unwrap();
        let Shape::Table(top) = &root.shape else { panic!() };
        let Shape::Table(entries) = &top[0].1.shape else { panic!() };
        let (name, entry) = &entries[0];
        assert_eq!((name.as_str(), &text[entry.key.clone()]), ("a.b", "\"a.b\""));
        let Shape::Table(fields) = &entry.shape else { panic!() };
        assert_eq!(&text[fields[0].1.span.clone()], "\"npx\"");
        let Shape::List(items) = &fields[1].1.shape else { panic!() };
        assert_eq!(items.iter().map(|item| &text[item.span.clone()]).collect::<Vec<_>>(), ["\"//x\"", "2.5", "true"]);
        assert_eq!(items[0].shape, Shape::Text("//x".to_owned()));
    }

    #[test]
    fn a_text_that_ends_too_early_is_said_to_lack_what_closes_it() {
        let said = |text: &str| parse(text).map_err(|fault| fault.text).unwrap_err();
        for (text, closing) in [
            ("{\"mcpServers\": {\"a\": {\"args\": [\"}\"", "]"),
            ("{\"mcpServers\": {\"a\": {}", "}"),
            ("{\"mcpServers\": {\"a", "\""),
            ("{\"mcpServers\": {} // }", "}"),
        ] {
            assert_eq!(said(text), format!("the file ends too early: a `{closing}` is missing"), "{text}");
        }
        assert!(said(" \n").starts_with("the file is empty"));
    }

    #[test]
    fn faults_have_a_place() {
        let fault = |text: &str| parse(text).map_err(|fault| (fault.at.start, fault.text)).unwrap_err();
        assert_eq!(fault("{}").0, 0);
        assert_eq!(fault("{\"mcpServers\": {\"a\": {\n\"x\" 1}}}").0, 27);
        assert!(fault("{\"mcpServers\": {\"a\": {}, \"a\": {}}}").1.contains("twice"));
        assert!(
            fault(&format!("{{\"servers\": {{\"a\": {}1{}}}}}", "[".repeat(99), "]".repeat(99))).1.contains("deep")
        );
        for text in ["", "[", "{\"mcpServers\": /*", "{\"mcpServers\": 1,,}", "\"", "{\"mcpServers\": {\"a\": \"\\"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
