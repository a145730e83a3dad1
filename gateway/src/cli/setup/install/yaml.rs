//! The entry in a host's YAML file: lines of its own, put in and cut out where the parser says that the servers stand.
//!
//! Nothing that writes YAML keeps comments, so nothing is written but the entry. What comes of it is read again, and is refused where
//! anything else in it has changed.

use std::ops::Range;

use super::entry::{Entry, NAME};
use crate::cli::setup::hosts::{Form, Host};
use crate::cli::setup::save::endings_kept;
use crate::config::import::line_number;
use crate::config::source::node::{Node, Shape};
use crate::config::source::yaml::{self, Whole};

/// The text with the entry in it.
pub(super) fn with(text: &str, host: &Host, entry: &Entry) -> Result<String, String> {
    let text = without(text, host)?.unwrap_or_else(|| text.to_owned());
    let (whole, key) = (read(&text)?, host.root[0]);
    let column = whole.root.entries().first().map_or(0, |(_, node)| column(&text, node.key.start));
    let empty = whole.empty.iter().find(|(name, _)| name == key);
    let mut out = text.clone();
    if let Some(servers) = whole.root.get(key) {
        let takes_list = host.form == Form::Continue;
        if matches!(servers.shape, Shape::List(_)) != takes_list || servers.is_single() {
            return Err(format!("`{key}` in it is no {}", if takes_list { "list" } else { "table" }));
        }
        match text.as_bytes().get(servers.span.start) {
            _ if has_brackets(&text, servers) => {
                let more = if is_vacant(servers) { "" } else { ", " };
                out.insert_str(servers.span.start + 1, &format!("{}{more}", entry.yaml_flow(host.form)));
            }
            Some(b'*' | b'&' | b'!') => return Err(format!("`{key}` in it has an anchor, an alias or a tag")),
            _ => {
                let first = match &servers.shape {
                    Shape::List(items) => items.first().map_or(servers.span.start, |item| hyphen(&text, item)),
                    _ => servers.entries().first().map_or(servers.span.start, |(_, node)| node.key.start),
                };
                let pad = " ".repeat(self::column(&text, first));
                put_lines(&mut out, servers.key.end, &entry.yaml(host.form, &pad));
            }
        }
    } else if let Some((_, at)) = empty {
        let rest = text[at.end..].lines().next().unwrap_or_default().trim_start_matches([':', ' ', '\t']);
        if !rest.is_empty() && !rest.starts_with('#') {
            return Err(format!("`{key}` in it has no value but {rest}; remove that line"));
        }
        put_lines(&mut out, at.end, &entry.yaml(host.form, &" ".repeat(column + 2)));
    } else {
        if !out.is_empty() && !out.ends_with('\n') {
            out.push('\n');
        }
        if whole.root.entries().is_empty() && whole.empty.is_empty() {
            out.push_str(head(host.form));
        }
        let pad = " ".repeat(column);
        out.push_str(&format!("{pad}{key}:\n{}", entry.yaml(host.form, &format!("{pad}  "))));
    }
    let out = endings_kept(&text, &out);
    match read(&out).is_ok_and(|after| is_same_but_for_entry(&whole, &after, key)) {
        true => Ok(out),
        false => Err(format!("the entry finds no place under `{key}`; write it in yourself")),
    }
}

/// The text without the entry, and without what only it needed; `None` where it has none.
pub(super) fn without(text: &str, host: &Host) -> Result<Option<String>, String> {
    let (whole, key) = (read(text)?, host.root[0]);
    let Some(servers) = whole.root.get(key) else { return Ok(None) };
    let Some(own) = own(servers) else { return Ok(None) };
    let is_list = matches!(servers.shape, Shape::List(_));
    let mut start = if is_list { own.span.start } else { own.key.start };
    let mut out = text.to_owned();
    if has_brackets(text, servers) {
        out.replace_range(piece(text, start..own.span.end), "");
    } else {
        if is_list {
            start = hyphen(text, own);
        }
        out.replace_range(lines(text, start..own.span.end), "");
        let is_alone = match &servers.shape {
            Shape::List(items) => items.len() == 1,
            _ => servers.entries().len() == 1,
        };
        // A comment beside the key is not ours to take away.
        let line = lines(text, servers.key.clone());
        if is_alone && !text[servers.key.end..line.end].contains('#') {
            out.replace_range(line, "");
        }
    }
    match read(&out).is_ok_and(|after| is_same_but_for_entry(&after, &whole, key)) {
        true => Ok(Some(out)),
        false => Err(format!("the entry `{NAME}` cannot be told from what stands around it; remove it yourself")),
    }
}

/// What is wrong with a file, and what to do.
pub(super) fn mend(why: &str) -> String {
    format!("{why}. Mend that, or move the file away, and run the command again; the file is as it was")
}

fn read(text: &str) -> Result<Whole, String> {
    yaml::whole(text).map_err(|syntax| {
        mend(&format!("it is not YAML (line {}): {}", line_number(text, syntax.at.start), syntax.text))
    })
}

/// What a file of the host begins with that has nothing else in it.
fn head(form: Form) -> &'static str {
    match form {
        Form::Continue => "name: Local Config\nversion: 1.0.0\nschema: v1\n",
        _ => "",
    }
}

fn has_brackets(text: &str, servers: &Node) -> bool {
    let bracket = if matches!(servers.shape, Shape::List(_)) { b'[' } else { b'{' };
    text.as_bytes().get(servers.span.start) == Some(&bracket)
}

/// Where the hyphen of an item stands: before its first key, in its line or above.
fn hyphen(text: &str, item: &Node) -> usize {
    text[..item.span.start].rfind('-').unwrap_or(item.span.start)
}

fn column(text: &str, at: usize) -> usize {
    at - line_start(text, at)
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |before| before + 1)
}

fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |more| at + more + 1)
}

/// The whole lines of a piece.
fn lines(text: &str, piece: Range<usize>) -> Range<usize> {
    line_start(text, piece.start)..line_end(text, piece.end)
}

/// Puts lines behind the one that this place is in.
fn put_lines(text: &mut String, at: usize, lines: &str) {
    let end = line_end(text, at);
    if !text[..end].ends_with('\n') {
        text.push('\n');
        return text.push_str(lines);
    }
    text.insert_str(end, lines);
}

/// One of several between brackets, with the comma beside it.
fn piece(text: &str, own: Range<usize>) -> Range<usize> {
    let rest = &text[own.end..];
    if let Some(after) = rest.trim_start().strip_prefix(',') {
        let after = after.trim_start_matches([' ', '\t']);
        return own.start..text.len() - after.len();
    }
    let before = text[..own.start].trim_end();
    own.start.min(before.strip_suffix(',').map_or(own.start, str::len))..own.end
}

fn is_vacant(servers: &Node) -> bool {
    match &servers.shape {
        Shape::List(items) => items.is_empty(),
        _ => servers.entries().is_empty(),
    }
}

fn is_own(node: &Node) -> bool {
    node.get("name").is_some_and(|name| name.shape == Shape::Text(NAME.to_owned()))
}

fn own(servers: &Node) -> Option<&Node> {
    match &servers.shape {
        Shape::List(items) => items.iter().find(|item| is_own(item)),
        _ => servers.get(NAME),
    }
}

/// Whether two texts say the same, but for the entry in the second, and what a file of its host begins with.
fn is_same_but_for_entry(before: &Whole, after: &Whole, key: &str) -> bool {
    let others = |whole: &Whole| -> Vec<(String, Node)> {
        whole.root.entries().iter().filter(|(name, _)| name != key).cloned().collect()
    };
    let servers = |whole: &Whole, without_own: bool| -> Vec<(String, Node)> {
        match whole.root.get(key).map(|node| &node.shape) {
            Some(Shape::Table(entries)) => {
                entries.iter().filter(|(name, _)| !(without_own && name == NAME)).cloned().collect()
            }
            Some(Shape::List(items)) => {
                let kept = items.iter().filter(|item| !(without_own && is_own(item)));
                kept.map(|item| (String::new(), item.clone())).collect()
            }
            _ => Vec::new(),
        }
    };
    let is_like = |one: &[(String, Node)], other: &[(String, Node)]| {
        one.len() == other.len()
            && one.iter().zip(other).all(|((name, node), (other, value))| name == other && node.is_like(value))
    };
    let (old, new) = (others(before), others(after));
    let is_new_file = old.is_empty() && before.empty.is_empty() && before.root.get(key).is_none();
    (is_new_file || is_like(&old, &new)) && is_like(&servers(before, false), &servers(after, true))
}
