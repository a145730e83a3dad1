//! References to variables, from the form of a host to ours: `${env:X}`, `$X`, `{env:X}`, `${input:id}` become `${X}`.

use std::collections::HashMap;

use super::dialect::Dialect;
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
    if dialect == Dialect::Codex {
        return Ok(text.replace('$', "$$"));
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
    let plain = |char: char| if char.is_ascii_alphanumeric() { char.to_ascii_uppercase() } else { '_' };
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
