//! `${VAR}`, `${VAR:-default}`, `${VAR:?message}`, `${file:/path}` and `$$` in texts: one pass, pure.

use std::ops::Range;

use crate::steps;

/// Where references are looked up.
pub(crate) trait Lookup {
    /// The value of an environment variable; an error says why it cannot be used.
    fn variable(&self, name: &str) -> Result<Option<String>, String>;
    /// The text of a file; an error says why it cannot be used.
    fn file(&self, path: &str) -> Result<String, String>;
}

/// Why a reference has no value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Problem {
    /// The bytes of the reference that may be shown: never those of a default.
    pub(crate) range: Range<usize>,
    pub(crate) kind: &'static str,
    pub(crate) text: String,
    pub(crate) hint: Option<String>,
    /// The variable that has no value.
    pub(crate) unset: Option<String>,
}

/// Fills the references of `text` in. What is filled in is never looked at again.
pub(crate) fn expand(text: &str, lookup: &impl Lookup) -> Result<String, Vec<Problem>> {
    let mut out = String::with_capacity(text.len());
    let mut problems = Vec::new();
    let mut at = 0;
    while let Some(found) = text[at..].find('$') {
        steps::add(found + 1);
        let dollar = at + found;
        out.push_str(&text[at..dollar]);
        let rest = &text[dollar + 1..];
        if rest.starts_with('$') {
            out.push('$');
            at = dollar + 2;
        } else if let Some(inside) = rest.strip_prefix('{') {
            let Some(length) = inside.find('}') else {
                problems.push(bad(dollar..dollar + 2, "this `${` is never closed".to_owned()));
                return Err(problems);
            };
            match reference(&inside[..length], dollar, lookup) {
                Ok(value) => out.push_str(&value),
                Err(problem) => problems.push(problem),
            }
            at = dollar + 2 + length + 1;
        } else {
            // A lone dollar stands for itself: `$HOME` is for a shell that is not here.
            out.push('$');
            at = dollar + 1;
        }
    }
    out.push_str(&text[at..]);
    if problems.is_empty() { Ok(out) } else { Err(problems) }
}

/// The value of what stands between the braces.
fn reference(inside: &str, dollar: usize, lookup: &impl Lookup) -> Result<String, Problem> {
    let whole = dollar..dollar + 2 + inside.len() + 1;
    if let Some(path) = inside.strip_prefix("file:") {
        return lookup.file(path).map_err(|why| Problem {
            range: whole,
            kind: "unreadable-file",
            text: format!("cannot read ${{{inside}}}: {why}"),
            hint: None,
            unset: None,
        });
    }
    // Several hosts write `${env:VAR}` in the files that are imported.
    let inside_env = inside.strip_prefix("env:").unwrap_or(inside);
    let skipped = inside.len() - inside_env.len();
    let length = inside_env.find(|char: char| !char.is_ascii_alphanumeric() && char != '_').unwrap_or(inside_env.len());
    let (name, rest) = inside_env.split_at(length);
    let shown = dollar..dollar + 2 + skipped + length;
    if name.is_empty() || name.starts_with(|char: char| char.is_ascii_digit()) {
        return Err(bad(shown, "this is not the name of a variable".to_owned()));
    }
    let value = lookup.variable(name).map_err(|why| bad(shown.clone(), format!("cannot use ${{{name}}}: {why}")))?;
    let set = value.as_ref().filter(|value| !value.is_empty());
    if rest.is_empty() {
        value.ok_or_else(|| Problem {
            range: whole,
            kind: "unset-variable",
            text: format!("${{{name}}} has no value and no default"),
            hint: Some(format!("export {name}=…, or write ${{{name}:-}} where it may be empty")),
            unset: Some(name.to_owned()),
        })
    } else if let Some(default) = rest.strip_prefix(":-") {
        if default.contains("${") {
            return Err(bad(shown, "a default cannot hold another reference".to_owned()));
        }
        Ok(set.cloned().unwrap_or_else(|| default.to_owned()))
    } else if let Some(message) = rest.strip_prefix(":?") {
        set.cloned().ok_or_else(|| Problem {
            range: shown,
            kind: "unset-variable",
            text: format!("${{{name}}} has no value: {}", if message.is_empty() { "it is required" } else { message }),
            hint: None,
            unset: Some(name.to_owned()),
        })
    } else if name == "input" || name == "secret" {
        Err(bad(shown, format!("`${{{name}:…}}` is not known here; use ${{VAR}} or ${{file:/path}}")))
    } else {
        Err(bad(shown, "expected `${VAR}`, `${VAR:-default}`, `${VAR:?message}` or `${file:/path}`".to_owned()))
    }
}

fn bad(range: Range<usize>, text: String) -> Problem {
    Problem { range, kind: "bad-reference", text, hint: None, unset: None }
}

#[cfg(test)]
mod tests;
