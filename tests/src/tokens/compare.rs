//! Compares two files in their normal form under a table of renames.

use super::lexer::{Kind, Token, begins_word, contents, continues_word};
use super::normal::{Normal, Terms};
use super::table::Names;

/// Differences shown with so many tokens.
const SHOWN: usize = 8;

/// The first difference of two files.
#[derive(Debug, PartialEq, Eq)]
pub struct Difference {
    /// The line in the old file; 0 behind its end.
    pub old_line: u32,
    /// The line in the new file; 0 behind its end.
    pub new_line: u32,
    /// The tokens from there on in the old file.
    pub old: String,
    /// The tokens from there on in the new file.
    pub new: String,
}

/// Compares an old file with a new one.
///
/// # Errors
/// With the first difference.
pub fn compare(old: &Normal<'_>, new: &Normal<'_>, names: &Names<'_>, terms: Terms) -> Result<(), Box<Difference>> {
    let old_tokens = names.with_new_paths(&old.tokens);
    let length = old_tokens.len().max(new.tokens.len());
    for at in 0..length {
        let fits = match (old_tokens.get(at), new.tokens.get(at)) {
            (Some(Token { kind: Kind::Run(one), .. }), Some(Token { kind: Kind::Run(other), .. })) => {
                compare_runs(&old.runs[*one], &new.runs[*other], names, terms)?;
                true
            }
            (Some(one), Some(other)) => accepts(one, other, names, terms),
            _ => false,
        };
        if !fits {
            return Err(Box::new(difference(
                &old_tokens[at.min(old_tokens.len())..],
                &new.tokens[at.min(new.tokens.len())..],
            )));
        }
    }
    Ok(())
}

fn difference(old: &[Token<'_>], new: &[Token<'_>]) -> Difference {
    let shown = |tokens: &[Token<'_>]| {
        let is_run = |token: &Token<'_>| matches!(token.kind, Kind::Run(_));
        let texts = tokens.iter().take(SHOWN).map(|token| if is_run(token) { "use …" } else { token.text });
        texts.collect::<Vec<_>>().join(" ")
    };
    let line = |tokens: &[Token<'_>]| tokens.first().map_or(0, |token| token.line);
    Difference { old_line: line(old), new_line: line(new), old: shown(old), new: shown(new) }
}

/// Compares the items of two runs in any order.
fn compare_runs(
    old: &[Vec<Token<'_>>],
    new: &[Vec<Token<'_>>],
    names: &Names<'_>,
    terms: Terms,
) -> Result<(), Box<Difference>> {
    let mut left: Vec<&Vec<Token<'_>>> = new.iter().collect();
    for item in old {
        let renamed = names.with_new_paths(item);
        let fits = |other: &&Vec<Token<'_>>| {
            let pairs = || renamed.iter().zip(other.iter());
            other.len() == renamed.len() && pairs().all(|(one, other)| accepts(one, other, names, terms))
        };
        match left.iter().position(fits) {
            Some(at) => drop(left.swap_remove(at)),
            None => return Err(Box::new(difference(item, left.first().map_or(&[], |other| other)))),
        }
    }
    match left.first() {
        Some(more) => Err(Box::new(difference(&[], more))),
        None => Ok(()),
    }
}

/// Whether a token may stand as another one in the new file.
fn accepts(old: &Token<'_>, new: &Token<'_>, names: &Names<'_>, terms: Terms) -> bool {
    if old.kind != new.kind {
        return false;
    }
    match old.kind {
        Kind::Word | Kind::Lifetime => names.accept(old.text, new.text, old.is_short || new.is_short),
        Kind::Text if terms.is_prose => sort_of(old.text) == sort_of(new.text),
        Kind::Text => text_accepted(old.text, new.text, names),
        Kind::Comment => comment_accepted(old.text, new.text, names),
        _ => old.text == new.text,
    }
}

/// Whether a string is one of characters, bytes or C.
fn sort_of(text: &str) -> Option<char> {
    text.chars().next().filter(|first| matches!(first, 'b' | 'c'))
}

/// Strings are equal, except for names that format placeholders capture.
fn text_accepted(old: &str, new: &str, names: &Names<'_>) -> bool {
    old == new
        || words_accepted(old, new, names, |text| placeholders(text).into_iter().map(|(range, _)| range).collect())
}

/// Comments are equal, except for names in backticks.
fn comment_accepted(old: &str, new: &str, names: &Names<'_>) -> bool {
    let lines = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join("\n");
    old == new || words_accepted(&lines(old), &lines(new), names, backticks)
}

/// Whether two texts have the same words and characters, except for renamed words within the ranges of the old text.
fn words_accepted(old: &str, new: &str, names: &Names<'_>, ranges: fn(&str) -> Vec<std::ops::Range<usize>>) -> bool {
    let ranges = ranges(old);
    let (one, other) = (words(old), words(new));
    one.len() == other.len()
        && one.iter().zip(&other).all(|((at, word), (_, renamed))| {
            let is_inside = || ranges.iter().any(|range| range.contains(at));
            word == renamed || (is_inside() && names.accept(word, renamed, false))
        })
}

/// The words of a text, and each character between them, with their places.
fn words(text: &str) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let length = match begins_word(first) {
            true => text[at..].find(|char| !continues_word(char)).unwrap_or(text.len() - at),
            false => first.len_utf8(),
        };
        words.push((at, &text[at..at + length]));
        at += length;
    }
    words
}

/// The places of a comment in backticks. A comment with an odd number of them belongs to a span over several lines, and counts whole.
fn backticks(text: &str) -> Vec<std::ops::Range<usize>> {
    let marks: Vec<usize> = text.match_indices('`').map(|(at, _)| at).collect();
    match marks.len() % 2 {
        0 => marks.chunks(2).map(|pair| pair[0]..pair[1]).collect(),
        _ => std::iter::once(0..text.len()).collect(),
    }
}

/// The format placeholders of a string as written, each with its place.
#[must_use]
pub fn placeholders(text: &str) -> Vec<(std::ops::Range<usize>, &str)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(open) = text[at..].find('{').map(|open| at + open) {
        let inside = &text[open + 1..];
        if inside.starts_with('{') {
            at = open + 2;
            continue;
        }
        let close = inside.find('}').filter(|close| is_placeholder(&inside[..*close]));
        if let Some(close) = close {
            found.push((open..open + close + 2, &text[open..open + close + 2]));
        }
        at = open + 1 + close.unwrap_or(0);
    }
    found
}

/// Whether the text between braces is an argument with an optional format.
fn is_placeholder(inside: &str) -> bool {
    let (argument, format) =
        inside.split_once(':').map_or((inside, None), |(argument, format)| (argument, Some(format)));
    let is_name = argument.chars().all(continues_word);
    let is_format = |format: &str| format.chars().all(|char| !char.is_whitespace() && !"{}\"\\,".contains(char));
    is_name && format.is_none_or(is_format)
}

/// The strings of two files in order that differ in their placeholders, each with its line, and those that are no prose.
#[must_use]
pub fn strings<'a>(old: &[Token<'a>], new: &[Token<'a>]) -> Strings<'a> {
    let of = |tokens: &[Token<'a>]| -> Vec<Token<'a>> {
        tokens.iter().filter(|token| token.kind == Kind::Text).copied().collect()
    };
    let sorted = |token: &Token<'a>| {
        let mut all: Vec<_> = placeholders(contents(token.text)).into_iter().map(|(_, text)| text).collect();
        all.sort_unstable();
        all
    };
    let mut strings = Strings::default();
    for (one, other) in of(old).into_iter().zip(of(new)).filter(|(one, other)| one.text != other.text) {
        if sorted(&one) != sorted(&other) {
            strings.placeholders.push((one, other));
        }
        if !contents(one.text).trim().contains(' ') {
            strings.words.push((one, other));
        }
    }
    strings
}

/// Changed strings.
#[derive(Debug, Default)]
pub struct Strings<'a> {
    /// Those with other placeholders: an error.
    pub placeholders: Vec<(Token<'a>, Token<'a>)>,
    /// Those of one word, such as a key or a metric: rarely prose.
    pub words: Vec<(Token<'a>, Token<'a>)>,
}

#[cfg(test)]
mod tests;
