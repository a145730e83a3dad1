//! The tokens of the product, wherever its files are, without tests.

use trunkline_tests::tokens::lexer::{Kind, Token, contents, lex};
use trunkline_tests::tokens::runs::closing;

use crate::tidy::source::{Source, below};

/// The source files of all packages of the product that are no tests.
pub(super) fn files() -> Vec<Source> {
    let is_test =
        |part: &str| matches!(part, "tests" | "tests.rs" | "benches" | "build.rs") || part.ends_with("_tests.rs");
    below("gateway").into_iter().filter(|source| !source.path.split('/').any(is_test)).collect()
}

/// The tokens of a file without comments and without items for tests.
pub(super) fn tokens(source: &Source) -> Vec<Token<'_>> {
    let all = lex(&source.text).unwrap_or_else(|error| panic!("{}: {error}", source.path));
    let all: Vec<Token<'_>> = all.into_iter().filter(|token| token.kind != Kind::Comment).collect();
    let mut out = Vec::with_capacity(all.len());
    let mut at = 0;
    while at < all.len() {
        if is_path(&all[at..], &["#", "[", "cfg", "(", "test", ")", "]"]) {
            at = item_end(&all, at + 7);
        } else {
            out.push(all[at]);
            at += 1;
        }
    }
    out
}

/// Whether these tokens begin with these texts.
pub(super) fn is_path(tokens: &[Token<'_>], texts: &[&str]) -> bool {
    tokens.len() >= texts.len() && tokens.iter().zip(texts).all(|(token, text)| token.text == *text)
}

/// The place behind the item that begins here.
fn item_end(tokens: &[Token<'_>], from: usize) -> usize {
    let mut at = from;
    while let Some(token) = tokens.get(at) {
        let is_open = ["(", "[", "{"].iter().any(|open| token.is(open));
        let close = if is_open { closing(tokens, at) } else { None };
        at = close.unwrap_or(at) + 1;
        // The braces of a `use` are followed by a semicolon.
        at += usize::from(token.is("{") && tokens.get(at).is_some_and(|next| next.is(";")));
        if token.is(";") || token.is("{") || token.is(",") {
            break;
        }
    }
    at
}

/// The contents of a string token.
pub(super) fn text(token: &Token<'_>) -> Option<String> {
    (token.kind == Kind::Text).then(|| contents(token.text).to_owned())
}

/// The macro calls `name!(…)` with any of these names, each with its name and the tokens inside.
pub(super) fn macros<'t, 'a>(tokens: &'t [Token<'a>], names: &[&str]) -> Vec<(&'a str, &'t [Token<'a>])> {
    let call = |at: usize| {
        let name = tokens[at].text;
        let open = at + 2;
        let is_call =
            names.contains(&name) && tokens.get(at + 1)?.is("!") && ["(", "[", "{"].contains(&tokens.get(open)?.text);
        is_call.then(|| closing(tokens, open)).flatten().map(|close| (name, &tokens[open + 1..close]))
    };
    (0..tokens.len()).filter_map(call).collect()
}

#[test]
fn items_for_tests_are_left_out() {
    let text = "a; #[cfg(test)] mod tests { b } #[cfg(test)] use c::{d, e}; f! { g } #[cfg(test)] fn h() -> u8 { i } j"
        .to_owned();
    let source = Source { path: String::new(), text, code: String::new(), product: String::new() };
    let tokens = tokens(&source);
    let texts: Vec<&str> = tokens.iter().map(|token| token.text).collect();
    assert_eq!(texts, ["a", ";", "f", "!", "{", "g", "}", "j"]);
    assert_eq!(macros(&tokens, &["f"])[0].1.len(), 1);
}
