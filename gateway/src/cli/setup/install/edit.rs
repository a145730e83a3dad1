//! Puts the entry into a text and takes it out; all else in it stays as it is, comments and all.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstObject, CstRootNode};
use toml_edit::{DocumentMut, Item, Table};

use super::entry::{Entry, NAME};
use super::yaml::{self, mend};
use crate::cli::setup::hosts::{Form, Host};
use crate::cli::setup::save::endings_kept;
use crate::config::import::{Format, line_number, unread};

/// JSON with comments and trailing commas, as hosts read it.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// The text with the entry in it. A text without anything in it becomes one with the entry alone.
pub(super) fn with(text: &str, host: &Host, entry: &Entry) -> Result<String, String> {
    if host.form.format() == Format::Yaml {
        return yaml::with(text, host, entry);
    }
    if host.form == Form::Codex {
        let mut document = toml(text)?;
        let fresh = || {
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        };
        let servers = document.entry(host.root[0]).or_insert_with(fresh);
        let servers = servers.as_table_like_mut().ok_or_else(|| wrong(host))?;
        servers.insert(NAME, Item::Table(entry.toml()));
        return Ok(endings_kept(text, &document.to_string()));
    }
    let text = if text.trim().is_empty() { "{\n}\n" } else { text };
    let (root, whole) = json(text)?;
    let mut object = whole;
    for key in host.keys(text, NAME) {
        object = object.object_value_or_create(key).ok_or_else(|| wrong(host))?;
    }
    match object.get(NAME) {
        Some(property) => property.set_value(entry.json(host.form)),
        None => drop(object.append(NAME, entry.json(host.form))),
    }
    Ok(root.to_string())
}

/// The text without the entry, and without what only it needed; `None` where it has none.
pub(super) fn without(text: &str, host: &Host) -> Result<Option<String>, String> {
    if host.form.format() == Format::Yaml {
        return yaml::without(text, host);
    }
    if host.form == Form::Codex {
        let mut document = toml(text)?;
        let servers = document.get_mut(host.root[0]).and_then(Item::as_table_like_mut);
        let gone = servers.and_then(|servers| servers.remove(NAME));
        return Ok(gone.map(|_| endings_kept(text, &document.to_string())));
    }
    if text.trim().is_empty() {
        return Ok(None);
    }
    let (root, whole) = json(text)?;
    let mut object = Some(whole);
    for key in host.keys(text, NAME) {
        object = object.and_then(|object| object.object_value(key));
    }
    let Some(property) = object.and_then(|object| object.get(NAME)) else { return Ok(None) };
    property.remove();
    Ok(Some(root.to_string()))
}

fn json(text: &str) -> Result<(CstRootNode, CstObject), String> {
    let root = CstRootNode::parse(text, &OPTIONS).map_err(|error| {
        // What reads the file for its servers has more to say.
        let said = unread(text, Format::Json);
        let (line, why) = said.unwrap_or_else(|| (error.line_display(), error.kind().to_string()));
        mend(&format!("it is not JSON (line {line}): {why}"))
    })?;
    let whole = root
        .object_value()
        .ok_or_else(|| mend("it holds no object (line 1): the file of a host is one, and begins with `{`"))?;
    Ok((root, whole))
}

fn toml(text: &str) -> Result<DocumentMut, String> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        let line = error.span().map(|span| format!(" (line {})", line_number(text, span.start))).unwrap_or_default();
        mend(&format!("it is not TOML{line}: {}", error.message()))
    })
}

fn wrong(host: &Host) -> String {
    mend(&format!("`{}` in it is no object", host.root.join(".")))
}
