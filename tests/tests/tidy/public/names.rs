//! Names on the wire: `_meta` names, headers, and single-purpose texts such as cookies and subprotocols.

use trunkline_tests::tokens::lexer::{Kind, Token};
use trunkline_tests::tokens::runs;

use super::product::{files, is_path, text, tokens};
use super::sorted;

/// Names with these beginnings belong to the protocol or to us.
const PREFIXES: [&str; 2] = ["io.modelcontextprotocol/", "trunkline/"];
/// Texts that begin so, and have no other characters than names have, go over the wire.
const WIRE: [&str; 4] = ["mcp-", "x-", "trunkline-", "trunkline."];

pub(crate) fn names() -> Vec<String> {
    let mut lines = Vec::new();
    for source in files() {
        let tokens = tokens(&source);
        lines.extend(headers(&tokens).into_iter().map(|name| format!("header {name}")));
        for text in tokens.iter().filter_map(text) {
            lines.extend(meta(&text).into_iter().map(|name| format!("meta {name}")));
            let is_name = text.chars().all(|char| char.is_ascii_alphanumeric() || "-._".contains(char));
            if is_name && WIRE.iter().any(|prefix| text.to_lowercase().starts_with(prefix)) {
                lines.push(format!("text {text}"));
            }
        }
    }
    sorted(lines)
}

/// The namespaced names in a text.
fn meta(text: &str) -> Vec<String> {
    let is_inside = |char: char| char.is_ascii_alphanumeric() || "_-.".contains(char);
    let found = PREFIXES.iter().flat_map(|prefix| text.match_indices(prefix).map(|(at, _)| (*prefix, at)));
    let begins = |(_, at): &(&str, usize)| !text[..*at].ends_with(|char| is_inside(char) || char == '/');
    let name = |(prefix, at): (&str, usize)| {
        let rest = &text[at + prefix.len()..];
        format!("{prefix}{}", &rest[..rest.find(|char| !is_inside(char)).unwrap_or(rest.len())])
    };
    found.filter(begins).map(name).collect()
}

/// The headers that a file names: constants of `http::header`, and those made of a text.
fn headers(tokens: &[Token<'_>]) -> Vec<String> {
    let is_constant = |token: &Token<'_>| {
        token.kind == Kind::Word
            && token.text.len() > 1
            && token.text.chars().all(|char| char.is_ascii_uppercase() || char == '_')
    };
    let constant = |token: &Token<'_>| is_constant(token).then(|| token.text.to_lowercase().replace('_', "-"));
    let made = tokens.windows(5).filter(|part| is_path(part, &["HeaderName", "::", "from_static", "("]));
    let made = made.filter_map(|part| text(&part[4]));
    let paths = tokens.windows(3).filter(|part| is_path(part, &["header", "::"])).filter_map(|part| constant(&part[2]));
    let (_, runs) = runs::extract(tokens);
    let used = runs.iter().flatten().filter(|item| item.windows(2).any(|part| is_path(part, &["header", "::"])));
    let used = used.filter_map(|item| item.iter().rev().find(|token| is_constant(token)).and_then(constant));
    made.chain(paths).chain(used).collect()
}
