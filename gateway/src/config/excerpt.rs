//! One line of a file as it may be shown: with its position, without secrets and control bytes.

use std::fmt::Write;
use std::ops::Range;

/// One line of a file with a marked piece.
#[derive(Clone, Debug, PartialEq)]
pub struct Excerpt {
    /// From 1.
    pub line: usize,
    /// From 1, in characters of the file.
    pub column: usize,
    /// The line: tabs as spaces, control bytes escaped, text in quotes masked where it may be secret.
    pub shown: String,
    /// Columns of `shown` before the mark.
    pub indent: usize,
    /// Columns of `shown` that are marked; at least 1.
    pub width: usize,
}

/// What of a line may be shown beside the keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Show {
    /// The marked piece as it is.
    Marked,
    /// No text of a value at all.
    KeysOnly,
    /// The mark stands inside a longer text, of which nothing else is shown.
    MarkedAlone,
}

/// Cuts the line around the beginning of `mark` out of `text`.
pub(super) fn excerpt(text: &str, mark: Range<usize>, show: Show) -> Excerpt {
    let start = floor(text, mark.start);
    let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
    let line = text[line_start..line_end].trim_end_matches('\r');
    let mark = start - line_start..floor(text, mark.end).clamp(start, line_end) - line_start;
    let hidden = hidden(line, &mark, show);

    let (mut shown, mut indent, mut width) = (String::new(), 0, 0);
    for (at, char) in line.char_indices() {
        let before = shown.chars().count();
        match char {
            _ if hidden.iter().any(|range| range.contains(&at)) => shown.push('*'),
            '\t' => shown.push(' '),
            char => push_printable(&mut shown, char),
        }
        let columns = shown.chars().count() - before;
        if at < mark.start {
            indent += columns;
        } else if mark.contains(&at) {
            width += columns;
        }
    }
    Excerpt {
        line: text[..line_start].matches('\n').count() + 1,
        column: text[line_start..start].chars().count() + 1,
        shown: shown.trim_end().to_owned(),
        indent,
        width: width.max(1),
    }
}

/// The pieces of a line that are not shown: text in quotes that is not a key, and comments.
fn hidden(line: &str, mark: &Range<usize>, show: Show) -> Vec<Range<usize>> {
    if show == Show::MarkedAlone {
        return vec![0..mark.start, mark.end..line.len()];
    }
    let mut hidden = Vec::new();
    let mut hide = |range: Range<usize>| match show {
        Show::KeysOnly => hidden.push(range),
        // Outside of the mark only: a quoted text is either marked whole, or not at all, or around it.
        _ if mark.start <= range.start && range.end <= mark.end => {}
        _ => hidden.extend([range.start..range.end.min(mark.start), range.start.max(mark.end)..range.end]),
    };
    let mut at = 0;
    while let Some(found) = line[at..].find(['"', '\'', '#']) {
        let open = at + found;
        let quote = line.as_bytes()[open];
        if quote == b'#' {
            hide(open + 1..line.len());
            break;
        }
        let close = closing(line, open + 1, quote);
        let is_key = line.get(close + 1..).is_some_and(|rest| rest.trim_start().starts_with([':', '=']));
        if !is_key {
            hide(open + 1..close);
        }
        at = (close + 1).min(line.len());
    }
    if show == Show::KeysOnly && hidden.iter().all(|range| !range.contains(&mark.start)) {
        hidden.extend(bare_value(line, mark));
    }
    hidden
}

/// A marked value without quotes (a number, say) is hidden too; a marked key is not.
fn bare_value(line: &str, mark: &Range<usize>) -> Option<Range<usize>> {
    let is_value = line[..mark.start].trim_end().ends_with([':', '=', ',', '[']);
    let is_bare = !line[mark.clone()].starts_with(['"', '\'', '[', '{']);
    (is_value && is_bare).then(|| mark.clone())
}

/// Where the quote that was opened is closed; the end of the line where it is not.
fn closing(line: &str, from: usize, quote: u8) -> usize {
    let bytes = line.as_bytes();
    let mut at = from;
    while at < bytes.len() && bytes[at] != quote {
        at += if bytes[at] == b'\\' && quote == b'"' { 2 } else { 1 };
    }
    at.min(bytes.len())
}

fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// `text` without anything that a terminal would obey.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        push_printable(&mut out, char);
    }
    out
}

fn push_printable(out: &mut String, char: char) {
    // Direction marks and zero-width characters can make one name look like another.
    let invisible = matches!(char, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    if char.is_control() || invisible {
        let _ = write!(out, "{}", char.escape_unicode());
    } else {
        out.push(char);
    }
}
