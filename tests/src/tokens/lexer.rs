//! A lexer for Rust: comments, literals, words and signs, each with its line.

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A line or block comment, doc comments included.
    Comment,
    /// An identifier or a keyword; a raw identifier keeps its `r#`.
    Word,
    /// A lifetime or a label, with its apostrophe.
    Lifetime,
    /// A number with its suffix.
    Number,
    /// A string of any kind: `"…"`, `r#"…"#`, `b"…"`, `c"…"`.
    Text,
    /// A character or a byte.
    Char,
    /// Punctuation. Operators are one token, except those that begin with `>`.
    Sign,
    /// The place of a run of `use` and `mod` items; its text is empty.
    Run(usize),
}

/// A token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// Its kind.
    pub kind: Kind,
    /// Its text.
    pub text: &'a str,
    /// Its first line, from 1.
    pub line: u32,
    /// Whether it stems from the short form of a field, `Point { x }`, or is complete already: either name is accepted.
    pub is_short: bool,
}

impl<'a> Token<'a> {
    /// A token that no file contains.
    #[must_use]
    pub fn made(kind: Kind, text: &'a str, line: u32) -> Self {
        Token { kind, text, line, is_short: false }
    }

    /// Whether it is this sign.
    #[must_use]
    pub fn is(&self, sign: &str) -> bool {
        self.kind == Kind::Sign && self.text == sign
    }

    /// Whether it is this word.
    #[must_use]
    pub fn is_word(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text == word
    }
}

/// Operators of several characters, the longest first. `>>`, `>=` and `>>=` stay apart, since two closed generics end with `>>`.
const SIGNS: [&str; 22] = [
    "<<=", "...", "..=", "::", "->", "=>", "==", "!=", "<=", "&&", "||", "+=", "-=", "*=", "/=", "%=", "^=", "&=",
    "|=", "<<", "..", "$",
];

/// Splits a source file into tokens.
///
/// # Errors
/// With the line of a literal or comment that does not end, or of a character that begins no token.
pub fn lex(text: &str) -> Result<Vec<Token<'_>>, String> {
    let mut lexer = Lexer { text, at: 0, line: 1 };
    if text.starts_with("#!") && !text.starts_with("#![") {
        lexer.skip(text.find('\n').unwrap_or(text.len()));
    }
    let mut tokens = Vec::new();
    while let Some(token) = lexer.next(tokens.last())? {
        tokens.push(token);
    }
    Ok(tokens)
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: u32,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip(&mut self, bytes: usize) {
        self.line +=
            self.text.as_bytes()[self.at..self.at + bytes].iter().filter(|byte| **byte == b'\n').count() as u32;
        self.at += bytes;
    }

    fn next(&mut self, last: Option<&Token<'a>>) -> Result<Option<Token<'a>>, String> {
        let blank = self.rest().len() - self.rest().trim_start().len();
        self.skip(blank);
        if self.rest().is_empty() {
            return Ok(None);
        }
        let is_field = last.is_some_and(|last| last.is("."));
        let (kind, length) = measure(self.rest(), is_field)
            .ok_or_else(|| format!("line {}: no token begins or ends here", self.line))?;
        let token = Token::made(kind, &self.rest()[..length], self.line);
        self.skip(length);
        Ok(Some(token))
    }
}

/// The kind and the length of the first token; `is_field` follows a dot, so that `x.0.1` has two indexes.
fn measure(rest: &str, is_field: bool) -> Option<(Kind, usize)> {
    let first = rest.chars().next()?;
    if rest.starts_with("//") {
        let end = rest.find('\n').unwrap_or(rest.len());
        return Some((Kind::Comment, rest[..end].trim_end().len()));
    }
    if rest.starts_with("/*") {
        return block_comment(rest).map(|length| (Kind::Comment, length));
    }
    if let Some(literal) = literal(rest) {
        return literal;
    }
    if let Some(raw) = rest.strip_prefix("r#").filter(|raw| raw.starts_with(begins_word)) {
        return Some((Kind::Word, 2 + word(raw)));
    }
    if begins_word(first) {
        return Some((Kind::Word, word(rest)));
    }
    if first.is_ascii_digit() {
        return Some((Kind::Number, number(rest, is_field)));
    }
    if first == '\'' {
        let name = rest[1..].strip_prefix("r#").unwrap_or(&rest[1..]);
        return Some((Kind::Lifetime, rest.len() - name.len() + word(name)));
    }
    let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign)).map(|sign| sign.len());
    sign.or_else(|| first.is_ascii_punctuation().then_some(1)).map(|length| (Kind::Sign, length))
}

/// Whether a character may begin an identifier.
#[must_use]
pub fn begins_word(char: char) -> bool {
    char.is_alphabetic() || char == '_'
}

/// Whether a character may continue an identifier.
#[must_use]
pub fn continues_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

fn word(rest: &str) -> usize {
    rest.find(|char| !continues_word(char)).unwrap_or(rest.len())
}

fn block_comment(rest: &str) -> Option<usize> {
    let (mut depth, mut at) = (0, 0);
    let bytes = rest.as_bytes();
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => (depth, at) = (depth + 1, at + 2),
            b"*/" if depth == 1 => return Some(at + 2),
            b"*/" => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    None
}

/// A string, character or byte: `None` if none begins here, `Some(None)` if it does not end.
fn literal(rest: &str) -> Option<Option<(Kind, usize)>> {
    let prefix = ["br", "cr", "b", "c", "r", ""].into_iter().find(|prefix| {
        rest.strip_prefix(prefix).is_some_and(|rest| match prefix.ends_with('r') {
            true => rest.trim_start_matches('#').starts_with('"'),
            false => rest.starts_with('"') || (matches!(*prefix, "b" | "") && rest.starts_with('\'')),
        })
    })?;
    let body = &rest[prefix.len()..];
    if prefix.ends_with('r') {
        let hashes = body.find('"')?;
        let end = format!("\"{}", &body[..hashes]);
        let inside = &body[hashes + 1..];
        return Some(inside.find(&end).map(|length| (Kind::Text, prefix.len() + hashes + 1 + length + end.len())));
    }
    if body.starts_with('"') {
        return Some(quoted(body, '"').map(|length| (Kind::Text, prefix.len() + length)));
    }
    // A lifetime has no apostrophe behind its first letter.
    let mut chars = body[1..].chars();
    let (first, second) = (chars.next()?, chars.next());
    if first != '\\' && second != Some('\'') && begins_word(first) {
        return None;
    }
    Some(quoted(body, '\'').map(|length| (Kind::Char, prefix.len() + length)))
}

/// The length of a literal with escapes, both marks included.
fn quoted(body: &str, mark: char) -> Option<usize> {
    let mut is_escaped = false;
    for (at, char) in body.char_indices().skip(1) {
        match char {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if char == mark => return Some(at + 1),
            _ => {}
        }
    }
    None
}

fn number(rest: &str, is_field: bool) -> usize {
    let digits = |from: usize| {
        from + rest[from..].find(|char: char| !(char.is_ascii_digit() || char == '_')).unwrap_or(rest.len() - from)
    };
    let mut end = digits(0);
    if is_field {
        return end;
    }
    if ["0x", "0o", "0b"].iter().any(|base| rest.starts_with(base)) {
        return word(rest);
    }
    if let Some(behind) = rest[end..].strip_prefix('.')
        && !behind.starts_with(|char: char| char == '.' || begins_word(char))
    {
        end = digits(end + 1);
    }
    if let Some(behind) = rest[end..].strip_prefix(['e', 'E']) {
        let sign = usize::from(behind.starts_with(['+', '-']));
        if behind[sign..].starts_with(|char: char| char.is_ascii_digit()) {
            end = digits(end + 1 + sign);
        }
    }
    end + word(&rest[end..])
}

/// The contents of a string token, as written.
#[must_use]
pub fn contents(text: &str) -> &str {
    let text = text.trim_start_matches(['b', 'c', 'r']).trim_matches('#');
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Kind::{Char, Comment, Lifetime, Number, Sign, Text, Word};

    fn kinds(text: &str) -> Vec<(Kind, &str)> {
        lex(text).unwrap().into_iter().map(|token| (token.kind, token.text)).collect()
    }

    #[test]
    fn comments_nest_and_end_at_line_ends() {
        let text = "/// a \n//! b\n/* c /* d */ e */ f // g";
        let comments = [(Comment, "/// a"), (Comment, "//! b"), (Comment, "/* c /* d */ e */")];
        assert_eq!(kinds(text), [&comments[..], &[(Word, "f"), (Comment, "// g")]].concat());
        assert!(lex("a\n/* /* */").unwrap_err().starts_with("line 2"));
    }

    #[test]
    fn strings_of_every_kind_are_one_token() {
        for text in
            [r#""a\"b""#, r##"r#"a"b"#"##, r#"b"\\""#, r##"br#"""#"##, r#"c"x""#, "r\"\\\"", "\"//\"", "\"a\nb\""]
        {
            assert_eq!(kinds(text), [(Text, text)]);
        }
        assert_eq!(kinds("rb\"x\""), [(Word, "rb"), (Text, "\"x\"")]);
        assert_eq!(["r##\"a#\"##", "b\"x\"", "\"\""].map(contents), ["a#", "x", ""]);
        assert!(lex("\"a").is_err() && lex("r#\"a\"").is_err());
    }

    #[test]
    fn characters_differ_from_lifetimes() {
        let text = r"'a' 'a '\'' '\u{1F}' b'\\' 'static '_ ' ' 'ä' '日' 'x: '('";
        let expected = [
            (Char, "'a'"),
            (Lifetime, "'a"),
            (Char, r"'\''"),
            (Char, r"'\u{1F}'"),
            (Char, r"b'\\'"),
            (Lifetime, "'static"),
            (Lifetime, "'_"),
            (Char, "' '"),
            (Char, "'ä'"),
            (Char, "'日'"),
            (Lifetime, "'x"),
            (Sign, ":"),
            (Char, "'('"),
        ];
        assert_eq!(kinds(text), expected);
        assert_eq!(kinds("<'a>(b: &'a u8)")[1], (Lifetime, "'a"));
    }

    #[test]
    fn raw_identifiers_keep_their_prefix() {
        assert_eq!(kinds("r#type r b c br"), ["r#type", "r", "b", "c", "br"].map(|word| (Word, word)));
    }

    #[test]
    fn numbers_end_before_ranges_methods_and_indexes() {
        assert_eq!(kinds("1..2"), [(Number, "1"), (Sign, ".."), (Number, "2")]);
        assert_eq!(kinds("1.max(2)")[..2], [(Number, "1"), (Sign, ".")]);
        assert_eq!(kinds("x.0.1")[2..], [(Number, "0"), (Sign, "."), (Number, "1")]);
        for text in ["1.5e-3_f64", "0xFF_u8", "1_000", "2.", "1e9", "0b1010", "7usize"] {
            assert_eq!(kinds(text), [(Number, text)]);
        }
    }

    #[test]
    fn operators_are_one_token_except_closed_generics() {
        let signs = |text| kinds(text).into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        assert_eq!(signs("a==b"), ["a", "==", "b"]);
        assert_eq!(signs("Vec<Vec<u8>>"), ["Vec", "<", "Vec", "<", "u8", ">", ">"]);
        assert_eq!(signs("a..=b"), ["a", "..=", "b"]);
        assert_eq!(signs("a&&b"), ["a", "&&", "b"]);
        assert_eq!(signs("a& &b"), ["a", "&", "&", "b"]);
    }

    #[test]
    fn tokens_know_their_lines() {
        let lines = |text| lex(text).unwrap().iter().map(|token| token.line).collect::<Vec<_>>();
        assert_eq!(lines("a\n\"b\nc\" d\n\ne"), [1, 2, 3, 5]);
        assert_eq!(lines("#!/bin/sh\na #![x]")[0], 2);
    }
}
