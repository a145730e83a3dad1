//! Words and parts of paths: which are plain, and what a value that may be a secret is shown as.

use super::looks::begins_as_key;
use crate::secrets::looks_random;

/// What stands in place of a value that may be a secret.
pub(crate) const HIDDEN: &str = "[secret]";
/// A longer word of letters alone may be chance.
const WORD_MAX: usize = 24;
/// A longer number may be a password, or a code.
const DIGITS_MAX: usize = 5;

/// One part of a path.
pub(super) fn piece(part: &str) -> String {
    let is_plain = part.chars().all(|char| char.is_alphanumeric() || "._-@+~".contains(char))
        && !looks_random(part)
        && !begins_as_key(part)
        && part.split(['-', '_', '.', '@', '+', '~']).all(is_plain);
    if is_plain || is_reference(part) { part.to_owned() } else { HIDDEN.to_owned() }
}

/// Whether a text is a number that is too short for a password: a port, a count, a size.
pub(super) fn is_number(text: &str) -> bool {
    (1..=DIGITS_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a word is one of letters, or of digits with at most one letter before or behind them, as versions have it.
pub(super) fn is_plain(word: &str) -> bool {
    let letters = word.chars().filter(|char| char.is_alphabetic()).count();
    let digits = word.chars().filter(char::is_ascii_digit).count();
    match digits {
        0 => word.len() <= WORD_MAX && is_word(word),
        // `v2`, `mcp2`, `k8s`: no password is so short.
        _ => letters == 0 && digits <= DIGITS_MAX || letters + digits <= 4,
    }
}

/// Whether a word has capitals at its beginning alone, or nothing else.
fn is_word(word: &str) -> bool {
    let capitals = word.chars().filter(|char| char.is_uppercase()).count();
    let changes =
        word.chars().zip(word.chars().skip(1)).filter(|(one, next)| one.is_uppercase() && next.is_lowercase());
    capitals == word.chars().count() || changes.count() <= 2 && capitals <= 3
}

/// The names of references alone: what stands for one without a value may be a secret.
pub(super) fn is_reference(text: &str) -> bool {
    let is_one =
        |inside: &str| !inside.is_empty() && inside.chars().all(|char| char.is_ascii_alphanumeric() || char == '_');
    text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).is_some_and(|inside| {
        is_one(inside) || inside.strip_prefix("file:").is_some_and(|path| !path.contains(['$', '{', '}']))
    })
}

/// The text with every reference as `one` makes it.
pub(super) fn with_references<'a>(text: &'a str, one: impl Fn(&'a str) -> &'a str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find("${") {
        let end = rest[at..].find('}').map_or(rest.len(), |end| at + end + 1);
        out.push_str(&rest[..at]);
        out.push_str(one(&rest[at..end]));
        rest = &rest[end..];
    }
    out + rest
}

/// The text without what stands for its references where they have no value.
pub(super) fn without_defaults(text: &str) -> String {
    with_references(text, |one| if is_reference(one) { one } else { HIDDEN })
}

/// Whether a word says how the credentials behind it are meant.
pub(super) fn is_scheme(word: &str) -> bool {
    ["bearer", "basic", "digest", "negotiate", "token"].iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// A value that may be a secret, unless it only refers to one.
pub(crate) fn hidden(text: &str) -> String {
    match text {
        "" => String::new(),
        text if is_reference(text) => text.to_owned(),
        text => match text.split_once(' ').filter(|(scheme, rest)| is_scheme(scheme) && is_reference(rest)) {
            Some((scheme, rest)) => format!("{scheme} {rest}"),
            None => HIDDEN.to_owned(),
        },
    }
}
