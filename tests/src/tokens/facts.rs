//! Facts of comments: numbers and words in backticks, which a rewritten comment should keep.

use std::collections::BTreeSet;

use super::lexer::{Kind, Token};

/// The facts that the comments of the old file hold, and no comment of the new file.
#[must_use]
pub fn lost(old: &[Token<'_>], new: &[Token<'_>]) -> Vec<String> {
    let kept = facts(&comments(new));
    facts(&comments(old)).into_iter().filter(|fact| !kept.contains(fact)).collect()
}

fn comments(tokens: &[Token<'_>]) -> String {
    let is_mark = |char| matches!(char, '/' | '!' | '*');
    let lines = tokens.iter().filter(|token| token.kind == Kind::Comment).flat_map(|token| token.text.lines());
    // Joined without line breaks: a span may be broken differently.
    lines.map(|line| line.trim().trim_start_matches(is_mark).trim()).collect::<Vec<_>>().join(" ")
}

/// The numbers and the spans in backticks of a text.
fn facts(text: &str) -> BTreeSet<String> {
    let spans = text.split('`').skip(1).step_by(2).map(|span| format!("`{span}`"));
    let words = text.split(|char: char| !(char.is_alphanumeric() || matches!(char, '.' | ',' | '_')));
    let numbers = words
        .map(|word| word.trim_matches(['.', ',']))
        .filter(|word| word.starts_with(|char: char| char.is_ascii_digit()));
    spans.chain(numbers.map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::lexer::lex;

    #[test]
    fn numbers_and_words_in_backticks_are_facts() {
        let old = lex("/// So long: 60 s, see `retry_after`, 1.5 and `a\n/// b`, section 4.\nfn f() { 7 }").unwrap();
        let new = lex("//! Waits 60 seconds (`a b`).\n// Section 4.\nfn f() { 1.5 }").unwrap();
        assert_eq!(lost(&old, &new), ["1.5", "`retry_after`"]);
        assert_eq!(lost(&old, &old), [""; 0]);
    }
}
