//! Names in a text that is not well written: those that are names however the text was meant, so that an excerpt may show them.

use std::ops::Range;

use crate::config::fault::line_of;
use crate::steps;

/// A longer name is not shown.
const NAME_MAX: usize = 64;
/// So long a name that is mixed of letters and digits may be a secret in the place of a name.
const CHANCE: usize = 12;

/// Keys that are known, and so no secrets, wherever they stand.
const KNOWN: [&str; 30] = [
    "args",
    "auth",
    "cmd",
    "command",
    "context_servers",
    "cwd",
    "defaults",
    "disabled",
    "enabled",
    "env",
    "environment",
    "envs",
    "extensions",
    "headers",
    "http_headers",
    "listen",
    "log",
    "mcp",
    "mcpServers",
    "mcp_servers",
    "projects",
    "serverUrl",
    "server",
    "servers",
    "timeout",
    "transport",
    "type",
    "upstreams",
    "uri",
    "url",
];

/// Names in the line of a fault in TOML: headings and keys that stand before the fault. A line that may go on with a text of an earlier
/// one has none.
pub(crate) fn of_toml(text: &str, fault: usize) -> Vec<Range<usize>> {
    let line = line_of(text, fault);
    steps::add(line.end);
    let is_odd = |text: &str, quotes: &str| memchr::memmem::find_iter(text.as_bytes(), quotes).count() % 2 == 1;
    let longs = ["\"\"\"", "'''"];
    if longs.iter().any(|quotes| is_odd(text, quotes) || is_odd(&text[..line.start], quotes)) {
        return Vec::new();
    }
    let mut toml =
        Toml { text, line, fault, open: Vec::new(), expects_key: true, is_doubtful: false, names: Vec::new() };
    if toml.walk() == Walk::Torn {
        return Vec::new();
    }
    let Toml { line, mut names, .. } = toml;
    // The quotes of a text in several lines may have been meant to stand elsewhere.
    if longs.iter().any(|quotes| text.contains(quotes)) {
        names.clear();
    }
    // So may those of a text in one line, where one is missing or too many.
    let piece = &text[line.clone()];
    if is_odd(piece, "\"") || is_odd(piece, "'") {
        let value = piece.find(['"', '\'', '=', '{']).map_or(line.end, |at| line.start + at);
        names.retain(|name| name.end <= value);
    }
    let first = known_first(text, &line).filter(|first| names.iter().all(|name| name.start > first.start));
    first.into_iter().chain(names).collect()
}

/// How far a text was read.
#[derive(PartialEq)]
enum Walk {
    Ended,
    /// An earlier line has a text without an end, so this one may be the rest of it.
    Torn,
}

/// TOML, read no further than to the fault.
struct Toml<'a> {
    text: &'a str,
    line: Range<usize>,
    fault: usize,
    /// The brackets that are open.
    open: Vec<u8>,
    expects_key: bool,
    /// Whether something between brackets is no value, so that what follows may be the rest of one.
    is_doubtful: bool,
    names: Vec<Range<usize>>,
}

impl Toml<'_> {
    fn walk(&mut self) -> Walk {
        let bytes = self.text.as_bytes();
        let mut at = 0;
        while at < self.line.end && at <= self.fault {
            at += match bytes[at] {
                b'#' => memchr::memchr(b'\n', &bytes[at..]).unwrap_or(bytes.len() - at),
                b'\n' => {
                    if self.open.is_empty() {
                        (self.expects_key, self.is_doubtful) = (true, false);
                    }
                    if self.is_doubtful && at + 1 == self.line.start {
                        return Walk::Torn;
                    }
                    1
                }
                byte if byte.is_ascii_whitespace() => 1,
                b'[' if self.open.is_empty() && self.expects_key => {
                    let brackets = if bytes[at..].starts_with(b"[[") { 2 } else { 1 };
                    self.heading(at + brackets);
                    self.expects_key = false;
                    brackets
                }
                byte @ (b'[' | b'{') => {
                    self.open.push(byte);
                    self.expects_key = byte == b'{';
                    1
                }
                b']' | b'}' => {
                    self.open.pop();
                    self.expects_key = false;
                    1
                }
                b',' => {
                    self.expects_key = self.open.last() == Some(&b'{');
                    1
                }
                b'=' => {
                    self.expects_key = false;
                    // Between brackets a value without its first quotes may go on in the next line.
                    let next = bytes[at + 1..].iter().find(|byte| !b" \t\r".contains(byte));
                    self.is_doubtful |= !self.open.is_empty() && matches!(next, None | Some(b'\n' | b','));
                    1
                }
                _ => {
                    if self.expects_key {
                        self.key(at);
                    }
                    let length = self.token(at);
                    if !self.is_sound(at, length) {
                        if at + length > self.line.start {
                            return Walk::Ended;
                        }
                        if !is_whole(&bytes[at..at + length]) {
                            return Walk::Torn;
                        }
                        self.is_doubtful = true;
                    }
                    self.expects_key = false;
                    length
                }
            };
        }
        Walk::Ended
    }

    /// The name behind the bracket of a heading, up to the first that is not plain.
    fn heading(&mut self, at: usize) {
        if at <= self.line.start {
            return;
        }
        let rest = &self.text[at..self.line.end];
        let inner = rest.trim_start_matches([' ', '\t']);
        let start = at + rest.len() - inner.len();
        let name = start..start + word(inner);
        self.names.extend(is_name(&self.text[name.clone()]).then_some(name));
    }

    /// A key, where a value follows it.
    fn key(&mut self, at: usize) {
        if at < self.line.start {
            return;
        }
        let (name, end) = quoted_or_bare(self.text, at, self.line.end);
        let behind = &self.text[end..self.line.end];
        let mark = behind.trim_start_matches([' ', '\t']);
        let is_key = match mark.as_bytes() {
            // The end of a text in base64, which stands there without quotes.
            [b'=', rest @ ..] if rest.trim_ascii_start().first().is_some_and(|next| b"=,}]#".contains(next)) => false,
            [b'=', rest @ ..] => mark.len() < behind.len() || !rest.trim_ascii().is_empty(),
            [b':', rest @ ..] => rest.first().is_none_or(|next| b" \t\r\"'".contains(next)),
            _ => false,
        };
        self.names.extend((is_key && is_name(&self.text[name.clone()])).then_some(name));
    }

    /// How long a text in quotes is, with them, or a word without.
    fn token(&self, at: usize) -> usize {
        let rest = &self.text.as_bytes()[at..];
        for quotes in [b"\"\"\"", b"'''"] {
            if rest.starts_with(quotes) {
                return memchr::memmem::find(&rest[3..], quotes).map_or(rest.len(), |end| end + 6);
            }
        }
        if rest[0] == b'"' || rest[0] == b'\'' {
            return text_length(rest);
        }
        let is_end = |byte: &u8| byte.is_ascii_whitespace() || b"=,[]{}#\"'".contains(byte);
        rest.iter().position(is_end).unwrap_or(rest.len()).max(1)
    }

    /// Whether a text in quotes, or a word that is no key, can be a value. What follows may be the rest of it otherwise.
    fn is_sound(&self, at: usize, length: usize) -> bool {
        let token = &self.text.as_bytes()[at..at + length];
        match token[0] {
            b'"' | b'\'' => is_whole(token) && !ends_open(token),
            // A number may be the beginning of a text that lacks its quotes.
            _ => self.expects_key || self.open.is_empty(),
        }
    }
}

/// Whether a text in quotes has the second ones; a word has none.
fn is_whole(token: &[u8]) -> bool {
    match token {
        [quote @ (b'"' | b'\''), .., last] => quote == last,
        [b'"' | b'\''] => false,
        _ => true,
    }
}

/// Whether a text in quotes ends as what stands before a value does: its second quotes may have been meant to begin one.
fn ends_open(token: &[u8]) -> bool {
    let inner = token.get(1..token.len().saturating_sub(1)).unwrap_or_default().trim_ascii_end();
    inner.last().is_some_and(|last| b"=:,[{(".contains(last))
}

/// Names in the line of a fault in a host's JSON: texts before the fault that have a colon behind them.
pub(crate) fn of_json(text: &str, fault: usize) -> Vec<Range<usize>> {
    let (line, bytes) = (line_of(text, fault), text.as_bytes());
    steps::add(line.end);
    let (mut names, mut open, mut at, mut last) = (Vec::new(), Vec::new(), 0, b'{');
    while at < line.end && at <= fault {
        let rest = &bytes[at..];
        let (length, is_blank) = match rest[0] {
            b'"' => (text_length(rest), false),
            b'/' if rest.starts_with(b"//") => (memchr::memchr(b'\n', rest).unwrap_or(rest.len()), true),
            b'/' if rest.starts_with(b"/*") => {
                (memchr::memmem::find(&rest[2..], b"*/").map_or(rest.len(), |end| end + 4), true)
            }
            byte => (1, byte.is_ascii_whitespace()),
        };
        if rest[0] == b'"' {
            let (token, name) = (&rest[..length], at..at + length);
            // The rest of the file may be meant to be inside of what is outside now.
            if !is_whole(token) && name.end <= line.start {
                return Vec::new();
            }
            if name.start >= line.start {
                if !is_whole(token) || ends_open(token) || name.end > fault {
                    break;
                }
                let inner = &text[name.start + 1..name.end - 1];
                let behind = text[name.end..line.end].trim_start();
                let is_key = behind.starts_with(':') && line.end - behind.len() < fault && is_name(inner);
                // An item of a list that has a colon behind it is a value still.
                let is_in_object = open.last() == Some(&b'{');
                let is_known = last == b'{' && KNOWN.contains(&inner);
                names.extend((is_in_object && (is_key && matches!(last, b'{' | b',') || is_known)).then_some(name));
            }
        }
        match rest[0] {
            byte @ (b'{' | b'[') => open.push(byte),
            b'}' | b']' => drop(open.pop()),
            _ => {}
        }
        if !is_blank {
            last = rest[length - 1];
        }
        at += length;
    }
    match names.is_empty() {
        true => known_first(text, &line).into_iter().collect(),
        false => names,
    }
}

/// The name that begins the line of a fault in YAML. A line that may go on with a text of an earlier one has none.
pub(crate) fn of_yaml(text: &str, fault: usize) -> Vec<Range<usize>> {
    let line = line_of(text, fault);
    let (before, piece) = (&text[..line.start], &text[line.clone()]);
    steps::add(line.end);
    let is_odd = |quote: char| before.matches(quote).count() % 2 == 1;
    let begins_block = |line: &str| {
        let line = line.split(" #").next().unwrap_or_default().trim_end();
        line.trim_end_matches(|char: char| char.is_ascii_digit() || "+-".contains(char)).ends_with(['|', '>'])
    };
    if is_odd('"') || is_odd('\'') || before.lines().any(begins_block) {
        return Vec::new();
    }
    let start = line.start + indent(piece);
    let (name, end) = quoted_or_bare(text, start, line.end);
    let mark = text[end..line.end].strip_prefix(':');
    let is_key = mark.is_some_and(|rest| rest.trim_end().is_empty() || rest.starts_with([' ', '\t']));
    let above = before.lines().rev().find(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
    let goes_on = above.is_some_and(|above| {
        let is_member = above == "---" || above.contains(": ") || above.trim_end().ends_with(':');
        !is_member || indent(piece) > indent(above) && !above.trim_end().ends_with(':')
    });
    let count = |brackets: [char; 2]| before.matches(brackets).count();
    let is_inside = count(['[', '{']) != count([']', '}']);
    // The text that ends here may have been meant to begin on the line before.
    let is_torn = ['"', '\''].iter().any(|quote| piece.matches(*quote).count() % 2 == 1);
    match is_key && !goes_on && !is_inside && !is_torn && name.start <= fault && is_name(&text[name.clone()]) {
        true => vec![name],
        false => known_first(text, &line).into_iter().collect(),
    }
}

/// Where what a line of YAML says begins.
fn indent(line: &str) -> usize {
    let mut inner = line.trim_start_matches(' ');
    while let Some(item) = inner.strip_prefix("- ") {
        inner = item.trim_start_matches(' ');
    }
    line.len() - inner.len()
}

/// The first word of a line, where it is a key that is known.
fn known_first(text: &str, line: &Range<usize>) -> Option<Range<usize>> {
    let piece = text[line.clone()].trim_start_matches([' ', '\t', '{', '[', ',']);
    let piece = piece.strip_prefix("- ").unwrap_or(piece);
    let piece = piece.strip_prefix(['"', '\'']).unwrap_or(piece);
    let name = line.end - piece.len()..line.end - piece.len() + word(piece);
    let behind = text[name.end..line.end].trim_start_matches(['"', '\'']).trim_start_matches([' ', '\t']);
    let is_key = behind.is_empty() || behind.starts_with(['=', ':', '{', '[', '"', '\'', '\r']);
    (is_key && KNOWN.contains(&&text[name.clone()])).then_some(name)
}

/// A name in quotes or without, and where it ends with them.
fn quoted_or_bare(text: &str, at: usize, line_end: usize) -> (Range<usize>, usize) {
    let rest = &text[at..line_end];
    match rest.as_bytes().first() {
        Some(b'"' | b'\'') => {
            let length = text_length(rest.as_bytes());
            match is_whole(&rest.as_bytes()[..length]) {
                true => (at + 1..at + length - 1, at + length),
                false => (at..at, at + length),
            }
        }
        _ => (at..at + word(rest), at + word(rest)),
    }
}

/// How long the word is with which a text begins.
fn word(text: &str) -> usize {
    text.find(|char: char| !is_plain(char)).unwrap_or(text.len())
}

fn is_plain(char: char) -> bool {
    char.is_ascii_alphanumeric() || "-_.".contains(char)
}

/// How long a text in quotes is; it ends with its line.
fn text_length(text: &[u8]) -> usize {
    let quote = text[0];
    let mut at = 1;
    while at < text.len() && text[at] != quote && text[at] != b'\n' {
        at += if text[at] == b'\\' && quote == b'"' && text.get(at + 1).is_some_and(|next| *next != b'\n') {
            2
        } else {
            1
        };
    }
    if text.get(at) == Some(&quote) { at + 1 } else { at.min(text.len()) }
}

/// Whether a name may be shown that stands where a name is expected: it is made of what names are made of, and not by chance.
fn is_name(name: &str) -> bool {
    let is_chance = |part: &str| {
        let has = |kind: fn(&u8) -> bool| part.bytes().any(|byte| kind(&byte));
        let digits = part.bytes().filter(u8::is_ascii_digit).count();
        part.len() >= CHANCE
            && digits >= 2
            && (has(u8::is_ascii_lowercase)
                && (has(u8::is_ascii_uppercase) || part.bytes().all(|byte| byte.is_ascii_alphanumeric())))
    };
    !name.is_empty() && name.len() <= NAME_MAX && name.chars().all(is_plain) && !name.split('.').any(is_chance)
}

#[cfg(test)]
mod tests;
