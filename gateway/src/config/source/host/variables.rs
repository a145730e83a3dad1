//! References to variables, from the form of a host to ours: `${env:X}`, `$X`, `{env:X}`, `${input:id}` become `${X}`.

use std::collections::HashMap;

use super::dialect::Dialect;
use super::note::leaf;
use crate::config::source::node::{Node, Shape};

/// What VS Code asks for when a server is started: the variable that stands for it, and its default.
#[derive(Debug, Default)]
pub(super) struct Inputs(HashMap<String, Option<String>>);

impl Inputs {
    /// Those that a file declares.
    pub(super) fn of(root: &Node) -> Self {
        let Some(Shape::List(items)) = root.get("inputs").map(|node| &node.shape) else { return Self::default() };
        let text = |node: &Node, key: &str| match node.get(key).map(|node| &node.shape) {
            Some(Shape::Text(text)) => Some(text.clone()),
            _ => None,
        };
        Self(items.iter().filter_map(|item| Some((text(item, "id")?, text(item, "default")))).collect())
    }
}

/// The text with references as we write them; an error says what has no counterpart.
pub(super) fn translated(text: &str, dialect: Dialect, inputs: &Inputs) -> Result<String, String> {
    if matches!(dialect, Dialect::Codex | Dialect::Goose) {
        return Ok(text.replace('$', "$$"));
    }
    if dialect == Dialect::Continue {
        return templated(text);
    }
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(['$', '{', '%']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let (written, length) = reference(rest, dialect, inputs)?;
        out.push_str(&written);
        rest = &rest[length..];
    }
    out.push_str(rest);
    Ok(out)
}

/// A text of Continue, which knows `${{ secrets.NAME }}` and `${{ inputs.NAME }}`.
fn templated(text: &str) -> Result<String, String> {
    let mut parts = text.split("${{");
    let mut out = parts.next().unwrap_or_default().replace('$', "$$");
    for part in parts {
        let Some((inside, rest)) = part.split_once("}}") else {
            out.push_str(&format!("$${{{{{}", part.replace('$', "$$")));
            continue;
        };
        let name = inside.trim().split_once('.').filter(|(kind, _)| matches!(*kind, "secrets" | "inputs"));
        // A secret of an organisation stands behind the names of its owner.
        let name = name.and_then(|(_, name)| name.rsplit(['.', '/']).next()).filter(|name| !name.is_empty());
        let Some(name) = name else {
            return Err(format!("`${{{{{inside}}}}}` has no value here; write the value, or ${{{{ secrets.NAME }}}}"));
        };
        out.push_str(&format!("${{{}}}{}", plain(name), rest.replace('$', "$$")));
    }
    Ok(out)
}

/// The headers of a server of Goose: `$NAME` and `${ NAME }` are filled from its own variables, and nothing else is.
pub(super) fn filled(headers: &Node, server: &Node) -> Node {
    let known: HashMap<String, String> = ["envs", "env_keys"]
        .into_iter()
        .filter_map(|key| server.get(key))
        .flat_map(|node| match &node.shape {
            Shape::Table(entries) => entries
                .iter()
                .filter_map(|(name, node)| match &node.shape {
                    Shape::Text(value) => Some((name.clone(), value.replace('$', "$$"))),
                    _ => None,
                })
                .collect(),
            Shape::List(items) => items
                .iter()
                .filter_map(|item| match &item.shape {
                    Shape::Text(name) => Some((name.clone(), format!("${{{name}}}"))),
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        })
        .collect();
    let one = |(header, node): &(String, Node)| {
        let shape = match &node.shape {
            Shape::Text(text) => Shape::Text(filled_text(text, &known)),
            shape => shape.clone(),
        };
        (header.clone(), leaf(shape, node))
    };
    match &headers.shape {
        Shape::Table(entries) => leaf(Shape::Table(entries.iter().map(one).collect()), headers),
        _ => headers.clone(),
    }
}

fn filled_text(text: &str, known: &HashMap<String, String>) -> String {
    let mut parts = text.split('$');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let braced = part.strip_prefix('{').and_then(|inside| inside.split_once('}'));
        let length = part.find(|char: char| !char.is_ascii_alphanumeric() && char != '_').unwrap_or(part.len());
        let (name, rest) = braced.map_or(part.split_at(length), |(name, rest)| (name.trim(), rest));
        match known.get(name) {
            Some(value) => out.push_str(&format!("{value}{rest}")),
            None => out.push_str(&format!("$${part}")),
        }
    }
    out
}

/// What the beginning of `rest` becomes, and how many bytes of it that is.
fn reference(rest: &str, dialect: Dialect, inputs: &Inputs) -> Result<(String, usize), String> {
    if let Some(inside) = rest.strip_prefix("${")
        && let Some(end) = inside.find('}')
    {
        return Ok((named(&inside[..end], dialect, inputs)?, end + 3));
    }
    if dialect == Dialect::OpenCode
        && let Some(end) = rest.find('}')
    {
        if let Some(name) = rest[..end].strip_prefix("{env:").filter(|name| is_name(name)) {
            return Ok((format!("${{{name}:-}}"), end + 1));
        }
        if let Some(path) = rest[..end].strip_prefix("{file:") {
            return Ok((format!("${{file:{path}}}"), end + 1));
        }
    }
    if dialect == Dialect::Gemini && rest.starts_with('$') {
        let length =
            rest[1..].find(|char: char| !char.is_ascii_alphanumeric() && char != '_').unwrap_or(rest.len() - 1);
        if is_name(&rest[1..=length]) {
            return Ok((format!("${{{}:-}}", &rest[1..=length]), length + 1));
        }
    }
    // A dollar that begins no reference stands for itself, also beside another.
    let one = if rest.starts_with('$') { "$$".to_owned() } else { rest[..1].to_owned() };
    Ok((one, 1))
}

/// What stands for the reference with this between its braces.
fn named(inside: &str, dialect: Dialect, inputs: &Inputs) -> Result<String, String> {
    let (kind, rest) = inside.split_once(':').unwrap_or((inside, ""));
    Ok(match (kind, rest) {
        ("userHome", "") => "${HOME}".to_owned(),
        ("pathSeparator" | "/", "") => "/".to_owned(),
        ("workspaceFolder" | "workspaceFolderBasename" | "workspaceRoot", _) => {
            return Err(format!("`${{{kind}}}` has no value here; write the path of the folder"));
        }
        ("input", id) => {
            let default = inputs.0.get(id).cloned().flatten().filter(|default| !default.contains(['$', '{', '}']));
            let default = default.map_or_else(String::new, |default| format!(":-{default}"));
            format!("${{{}{default}}}", variable(id))
        }
        ("env", name) if dialect == Dialect::Gemini => format!("${{{name}:-}}"),
        ("env", name) => format!("${{{name}}}"),
        ("file", path) => format!("${{file:{path}}}"),
        (name, "") if dialect == Dialect::Gemini && is_name(name) => format!("${{{name}:-}}"),
        ("command" | "config" | "selectedText", _) => {
            return Err(format!("`${{{kind}:…}}` has no value here; write the value, or ${{VAR}}"));
        }
        _ => format!("${{{inside}}}"),
    })
}

/// The variable that stands for a name with other characters: `github-token` is `GITHUB_TOKEN`.
pub(super) fn variable(name: &str) -> String {
    plain(&name.to_ascii_uppercase())
}

/// The same of a name whose case is its own.
fn plain(name: &str) -> String {
    let plain = |char: char| if char.is_ascii_alphanumeric() { char } else { '_' };
    let name: String = name.chars().map(plain).collect();
    match name.starts_with(|char: char| char.is_ascii_digit()) {
        true => format!("_{name}"),
        false => name,
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|char: char| char.is_ascii_digit())
        && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
}
