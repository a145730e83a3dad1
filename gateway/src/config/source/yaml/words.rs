//! What is wrong with YAML, in plain words.

use crate::config::source::json::Syntax;
use crate::config::source::toml::BACKSLASH;

/// What the parser says of a line without a colon.
const NO_COLON: &str = "simple key expect ':'";
const INDENTED: &str = "this line is indented otherwise than the lines around it";

/// What the parser says of a text, and where.
pub(super) fn said(text: &str, at: usize, info: &str) -> Syntax {
    let before = text.get(..at).unwrap_or_default();
    if info == NO_COLON {
        // It is found out where the next line begins.
        let before = before.trim_end();
        let line = before.rfind('\n').map_or(0, |end| end + 1);
        let at = line + before[line..].len() - before[line..].trim_start().len();
        return Syntax::new(at..at + 1, "this line is neither `key: value` nor `- item`");
    }
    let line = before.rsplit('\n').next().unwrap_or_default();
    let words = match info.starts_with("mapping values are not allowed") {
        true if line.contains(": ") => {
            "a second `: ` stands in this line: a text with one in it needs quotes".to_owned()
        }
        true => INDENTED.to_owned(),
        false => plain(info),
    };
    Syntax::new(at..at + 1, words)
}

fn plain(info: &str) -> String {
    let is = |begin: &str, end: &str| info.starts_with(begin) && info.ends_with(end);
    let words = match () {
        () if is("while scanning a quoted scalar", "end of stream") || is("invalid indentation", "quoted scalar") => {
            "a closing quote is missing"
        }
        () if is("while parsing a block", "indicator") || is("while parsing a block mapping", "expected key") => {
            INDENTED
        }
        () if is("while parsing a flow sequence", "or ']'") => "a `]` or a comma is missing",
        () if is("while parsing a flow mapping", "or '}'") => "a `}` or a comma is missing",
        () if is("tabs disallowed", "") => "a tab stands at the beginning of this line: YAML is indented by blanks",
        () if is("while parsing node", "unknown anchor") => {
            "no anchor has this name: a text that begins with `*` needs quotes"
        }
        () if is("while parsing a quoted scalar", "escape character") => BACKSLASH,
        () if is("while parsing a node", "node content") => "a value is missing",
        () if info == "misplaced bracket" => "a bracket is too many",
        () => match info.strip_prefix("unexpected character: `").and_then(|rest| rest.chars().next()) {
            Some(char) => return format!("a text that begins with `{char}` needs quotes"),
            None => info,
        },
    };
    words.to_owned()
}
