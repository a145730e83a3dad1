//! The reference of all keys: the page for people, and the descriptions in the JSON Schema.

use std::collections::HashMap;

use super::doc::{KeyDoc, TableDoc};
use super::read::ANY;
use super::sections::TABLES;

/// The head of the page.
const HEAD: &str = "\
<!-- Generated from the code: TRUNKLINE_WRITE_PUBLIC=1 cargo test --workspace --locked --test tidy public -->

# Configuration keys

Every key with type, default and meaning, one section per table. [Configuration](../configuration.md) explains the sources of a
configuration, the [notation of values](../configuration.md#values), and [reloads](../configuration.md#what-takes-effect-at-a-reload).
[config.example.toml](../../config.example.toml) holds all keys in one file.
";

/// The page `docs/reference/configuration.md`.
#[doc(hidden)]
pub fn reference_page() -> String {
    let sections = TABLES.into_iter().map(section);
    HEAD.to_owned() + &sections.collect::<String>()
}

/// The section of a table: heading, introduction, keys, notes.
fn section(table: &TableDoc) -> String {
    let rows: Vec<String> = keys(table).map(row).collect();
    let rows = format!("| key | type | default | meaning |\n|---|---|---|---|\n{}", rows.join("\n"));
    let heading = format!("## {}", table.heading);
    let blocks = [&*heading, table.intro, &rows, table.notes.trim()];
    blocks.into_iter().filter(|block| !block.is_empty()).map(|block| format!("\n{block}\n")).collect()
}

fn row(key: &KeyDoc) -> String {
    let default = if key.default.is_empty() { String::new() } else { format!(" {}", key.default) };
    format!("| `{}` | {} |{default} | {} |", key.key, key.kind, key.description)
}

fn keys(table: &TableDoc) -> impl Iterator<Item = &'static KeyDoc> {
    table.keys.iter().copied().flatten()
}

/// The descriptions of tables and keys by path, without the targets of links.
#[derive(Debug)]
pub(super) struct Descriptions(HashMap<String, String>);

impl Descriptions {
    /// Collects the descriptions of all tables.
    pub(super) fn new() -> Self {
        let mut found = HashMap::new();
        for table in TABLES {
            let path = table.path.join(".");
            let described = keys(table).map(|key| (format!("{path}.{}", key.key), describe(key)));
            found.extend(described);
            if let Some(line) = table.intro.lines().next() {
                found.insert(path, strip_links(line));
            }
        }
        Self(found)
    }

    /// The description of a path. Keys of an upstream fall back to `[defaults]`, keys of a listener to `[server]`.
    pub(super) fn find(&self, path: &[String]) -> Option<&str> {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let shared = match &path[..] {
            ["upstreams", ANY, rest @ ..] => Some([&["defaults"], rest].concat()),
            ["server", "listeners", ANY, rest @ ..] => Some([&["server"], rest].concat()),
            _ => None,
        };
        let own = self.0.get(&path.join("."));
        own.or_else(|| self.0.get(&shared?.join("."))).map(String::as_str)
    }
}

fn describe(key: &KeyDoc) -> String {
    match key.default {
        "" => strip_links(key.description),
        default => format!("{} (default: {})", strip_links(key.description), strip_links(default)),
    }
}

/// Keeps the text of links and drops their targets, which lead nowhere in an editor.
fn strip_links(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        // The bracket of a link is the last one before its target.
        let (head, label) = before.rsplit_once('[').unwrap_or((before, ""));
        out.push_str(head);
        out.push_str(label);
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_become_their_text() {
        assert_eq!(strip_links("a [b `[c]`](d.md#e) f [g](h)"), "a [b `c]` f g");
        assert_eq!(strip_links("`a` [b](c)."), "`a` b.");
    }

    #[test]
    fn row_without_default_has_empty_cell() {
        let key = KeyDoc { key: "a", kind: "text", default: "", description: "b" };
        assert_eq!(row(&key), "| `a` | text | | b |");
        assert_eq!(row(&KeyDoc { default: "`1`", ..key }), "| `a` | text | `1` | b |");
    }
}
