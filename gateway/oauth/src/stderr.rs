//! What the command of a token says on its stderr, as the operator is shown it: without what may be a token.

use crate::secrets::mask::{MASK, Secrets, masked};
use crate::secrets::{decoded, looks_random, printable};

/// So much of it is told.
const SAID_CHARS: usize = 200;
/// What stands before a secret: words in the names of keys, and the schemes of a header.
const KEYS: [&str; 9] = ["token", "secret", "passw", "key", "auth", "assertion", "cookie", "credential", "jwt"];
const SCHEMES: [&str; 2] = ["bearer", "basic"];
/// Behind a colon or a scheme shorter words, and those without a digit, are those of a language.
const WORD_MIN: usize = 8;

/// What stands before a word.
#[derive(Clone, Copy, PartialEq)]
enum Before {
    Nothing,
    /// The name of a key and `=`.
    Assignment,
    /// The name of a key and a colon, or the scheme of a header.
    Announcement,
}

/// Its first words. `token` is what it has given out all the same.
pub(super) fn shown(stderr: &[u8], token: Option<&str>) -> String {
    let said = decoded(stderr);
    let said = masked(said.trim()).into_owned();
    let own = Secrets::of(token.map(str::to_owned));
    let said: String = without_tokens(&own.masked(&said)).chars().take(SAID_CHARS).collect();
    printable(&said)
}

/// A text without words that are the value of a key that looks secret, stand behind a scheme, or look like chance.
fn without_tokens(text: &str) -> String {
    let (mut out, mut rest, mut before) = (String::with_capacity(text.len()), text, Before::Nothing);
    while !rest.is_empty() {
        let word = &rest[..rest.find(|char| !is_of_word(char)).unwrap_or(rest.len())];
        rest = &rest[word.len()..];
        let gap = &rest[..rest.find(is_of_word).unwrap_or(rest.len())];
        rest = &rest[gap.len()..];
        let is_scheme = SCHEMES.iter().any(|scheme| word.eq_ignore_ascii_case(scheme));
        let is_secret = match before {
            Before::Nothing => false,
            Before::Assignment => !is_scheme,
            Before::Announcement => word.len() >= WORD_MIN && word.bytes().any(|byte| byte.is_ascii_digit()),
        };
        out.push_str(if is_secret || looks_random(word) { MASK } else { word });
        out.push_str(gap);
        before = behind(word, gap, is_scheme);
    }
    out
}

/// What a word and the gap behind it are for the next word.
fn behind(word: &str, gap: &str, is_scheme: bool) -> Before {
    let small = word.to_ascii_lowercase();
    let is_key = KEYS.iter().any(|key| small.contains(key));
    match gap {
        _ if gap.contains('\n') => Before::Nothing,
        _ if is_key && gap.contains('=') => Before::Assignment,
        _ if is_key && gap.contains(':') || is_scheme => Before::Announcement,
        _ => Before::Nothing,
    }
}

fn is_of_word(char: char) -> bool {
    char.is_alphanumeric() || "-._~+/".contains(char)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_says_is_shown_without_what_may_be_a_token() {
        for (said, expected) in [
            ("log in first\n", "log in first"),
            ("invalid token: malformed", "invalid token: malformed"),
            ("token expired 2026-01-02T03:04:05Z", "token expired 2026-01-02T03:04:05Z"),
            ("no such file: /opt/Tools1/bin/helper", "no such file: /opt/Tools1/bin/helper"),
            ("+ TOKEN=canary", "+ TOKEN=[secret]"),
            ("+ export API_KEY='canary-1'", "+ export API_KEY='[secret]'"),
            ("> Authorization: Bearer canary-of-7", "> Authorization: Bearer [secret]"),
            ("refused: bearer canary-of-7", "refused: bearer [secret]"),
            (r#"{"access_token":"canary-of-7","type":"x"}"#, r#"{"access_token":"[secret]","type":"x"}"#),
            ("got Canary0123456789abcdef, which is over", "got [secret], which is over"),
            ("curl -d client_secret=canary&grant_type=x", "curl -d client_secret=[secret]&grant_type=x"),
        ] {
            assert_eq!(shown(said.as_bytes(), None), expected);
        }
        assert_eq!(shown(b"+ echo given-canary", Some("given-canary")), "+ echo [secret]");
        assert_eq!(shown(&b"word ".repeat(1000), None).len(), SAID_CHARS - 1);
        assert_eq!(shown(b"\xff \x1b[2J", None), r"\xff \u{1b}[2J");
    }
}
