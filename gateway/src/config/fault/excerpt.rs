//! One line of a file as it may be shown: with its position, without secrets and control bytes.

use std::ops::Range;

use crate::secrets::visible;
use crate::steps;

/// The most columns that are shown.
const MOST: usize = 110;
/// Fewer are none that can be read.
const LEAST: usize = 20;
/// So many bytes on either side of a mark are looked at: enough for as many columns of the longest characters.
const NEAR: usize = 8 * MOST;

/// One line of a file with a marked piece.
#[derive(Clone, Debug, PartialEq)]
pub struct Excerpt {
    /// From 1.
    pub line: usize,
    /// From 1, in characters of the file.
    pub column: usize,
    /// The line: tabs as spaces, control bytes escaped, a star for every character that may be secret.
    pub shown: String,
    /// Columns of `shown` before the mark.
    pub indent: usize,
    /// Columns of `shown` that are marked; at least 1.
    pub width: usize,
}

impl Excerpt {
    /// The line, the columns before the mark and those of the mark, where there is room for so many columns of it.
    pub(super) fn within(&self, columns: usize) -> (String, usize, usize) {
        let fits = self.shown.chars().count().max(self.indent + self.width) <= columns;
        match fits || columns < LEAST {
            true => (self.shown.clone(), self.indent, self.width),
            // A sign on either side says that there is more.
            false => window(&self.shown, self.indent, self.width, (false, false), columns - 2),
        }
    }
}

/// The line in which a byte of `text` stands.
pub(crate) fn line_of(text: &str, at: usize) -> Range<usize> {
    let at = floor(text, at);
    let bytes = text.as_bytes();
    let start = memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |at| at + 1);
    start..memchr::memchr(b'\n', &bytes[at..]).map_or(text.len(), |found| at + found)
}

/// Cuts the line around the beginning of `mark` out of `text`. Of what is written there only the pieces
/// in `open` are shown, since any other may belong to a secret: broken quotes, several lines, a comment.
/// So are `keys`, those that stand in the line, in their order: a name is no secret. A heading is shown up to the last of its names.
pub(crate) fn excerpt(text: &str, mark: Range<usize>, open: &[Range<usize>], keys: &[Range<usize>]) -> Excerpt {
    let start = floor(text, mark.start);
    steps::add(text.len());
    let Range { start: line_start, end: line_end } = line_of(text, start);
    // A host's file may be one long line: only what is near the mark is looked at.
    let (from, to) =
        (ceiling(text, start.saturating_sub(NEAR).max(line_start)), floor(text, line_end.min(start + NEAR)));
    let line = if to == line_end { text[from..to].trim_end_matches('\r') } else { &text[from..to] };
    let heading = (from == line_start && is_heading(&text[from..start], open, &mark)).then_some(from..start);
    let names = keys.iter().rev().find(|key| key.start >= from && is_heading_of(&text[from..key.start]));
    let names = names.filter(|_| from == line_start).map(|key| from..key.start);
    // What a comment says may be a secret that was in force once; that it is one may be seen.
    let remark = (from == line_start).then(|| comment(line)).flatten().map(|mark| from + mark.start..from + mark.end);
    let is_key = |at: usize| keys.get(keys.partition_point(|key| key.end <= at)).is_some_and(|key| key.contains(&at));
    let is_open = |at: usize| {
        open.iter().chain(&heading).chain(&names).chain(&remark).any(|range| range.contains(&at)) || is_key(at)
    };

    let (mut shown, mut indent, mut width) = (String::new(), 0, 0);
    for (at, char) in line.char_indices().map(|(at, char)| (from + at, char)) {
        let before = shown.len();
        match char {
            char if char.is_whitespace() => shown.push(' '),
            '"' | '\'' | '=' | ':' | ',' | '[' | ']' | '{' | '}' => shown.push(char),
            char if is_open(at) => shown.push_str(&visible(char.encode_utf8(&mut [0; 4]))),
            _ => shown.push('*'),
        }
        let columns = shown[before..].chars().count();
        if at < start {
            indent += columns;
        } else if mark.contains(&at) {
            width += columns;
        }
    }
    let (shown, indent, width) =
        window(shown.trim_end(), indent, width.max(1), (from > line_start, to < line_end), MOST);
    Excerpt {
        line: memchr::memchr_iter(b'\n', &text.as_bytes()[..line_start]).count() + 1,
        column: text[line_start..start].chars().count() + 1,
        shown,
        indent,
        width,
    }
}

/// The mark with which a comment begins: outside of the quotes of its line, and behind a blank.
fn comment(line: &str) -> Option<Range<usize>> {
    let (mut quote, mut before) = (None, ' ');
    for (at, char) in line.char_indices() {
        match (quote, char) {
            (Some(open), _) if char == open && before != '\\' => quote = None,
            (None, '"' | '\'') => quote = Some(char),
            (None, '#') if before.is_whitespace() => return Some(at..at + 1),
            (None, '/') if before.is_whitespace() && line[at + 1..].starts_with(['/', '*']) => return Some(at..at + 2),
            _ => {}
        }
        before = char;
    }
    None
}

/// At most so many columns, with the beginning of the mark among them: a host's file may be one long line. No mark goes on behind the line.
fn window(line: &str, indent: usize, width: usize, cut: (bool, bool), most: usize) -> (String, usize, usize) {
    let chars: Vec<char> = line.chars().collect();
    let from = if chars.len() > most { indent.saturating_sub(most / 2) } else { 0 };
    let to = chars.len().min(from + most);
    let width = width.min(to.saturating_sub(indent).max(1));
    let mut shown: String = chars.get(from..to).unwrap_or_default().iter().collect();
    if to < chars.len() || cut.1 {
        shown.push('…');
    }
    if from == 0 && !cut.0 {
        return (shown, indent, width);
    }
    (format!("…{shown}"), indent - from + 1, width)
}

/// Whether `before`, the line up to a marked key that is shown, is the beginning of `[a.b.key]`.
fn is_heading(before: &str, open: &[Range<usize>], mark: &Range<usize>) -> bool {
    let plain = |char: char| char.is_ascii_alphanumeric() || "_-.".contains(char);
    let names = before.trim_start().strip_prefix('[').map(|rest| rest.strip_prefix('[').unwrap_or(rest));
    open.contains(mark) && names.is_some_and(|names| names.chars().all(plain))
}

/// Whether `before`, the line up to a key of the file, is the beginning of a heading: nothing in it but names.
fn is_heading_of(before: &str) -> bool {
    let names = before.trim_start().strip_prefix('[').map(|rest| rest.strip_prefix('[').unwrap_or(rest));
    names.is_some_and(|names| !names.contains(['[', ']', '{', '}', ',', '=', '#']))
}

fn ceiling(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
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
    visible(text).into_owned()
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "one open piece is a list of one range")]
mod tests {
    use super::*;

    fn shown(text: &str, mark: Range<usize>, open: &[Range<usize>]) -> (String, usize, usize) {
        let excerpt = excerpt(text, mark, open, &[]);
        (excerpt.shown, excerpt.indent, excerpt.width)
    }

    #[test]
    fn only_open_pieces_are_shown() {
        let text = "x\nkey = \"secret\" # note\ny";
        assert_eq!(shown(text, 2..5, &[2..5]), ("key = \"******\" # ****".to_owned(), 0, 3));
        assert_eq!(shown(text, 8..16, &[2..5]), ("key = \"******\" # ****".to_owned(), 6, 8));
        assert_eq!(shown(text, 8..16, &[2..5, 8..16]), ("key = \"secret\" # ****".to_owned(), 6, 8));
        assert_eq!(shown(text, 8..16, &[]), ("*** = \"******\" # ****".to_owned(), 6, 8));
    }

    #[test]
    fn that_there_is_a_comment_is_shown_and_not_what_it_says() {
        for (line, expected) in [
            ("# a = \"b\"", "# * = \"*\""),
            ("\"a # b\" // c", "\"* * *\" // *"),
            ("'a' /* b */", "'*' /* * **"),
            ("a#b http://c", "*** ****:***"),
            ("\"a \\\" # b\"", "\"* *\" * *\""),
        ] {
            assert_eq!(shown(line, 0..1, &[]).0, expected, "{line}");
        }
    }

    #[test]
    fn a_heading_is_shown_up_to_its_marked_name() {
        assert_eq!(shown("[[a.b.name]] # note", 6..10, &[6..10]).0, "[[a.b.name]] # ****");
        assert_eq!(shown("[\"a\", b]", 6..7, &[6..7]).0, "[\"*\", b]");
        assert_eq!(shown("[a.b]", 3..4, &[]).0, "[***]");
    }

    #[test]
    fn keys_are_shown_and_what_stands_between_them_is_not() {
        let shown =
            |text: &str, mark: Range<usize>, keys: &[Range<usize>]| excerpt(text, mark.clone(), &[mark], keys).shown;
        assert_eq!(
            shown("e = { A = \"x\", B = \"y\" } # c", 6..7, &[0..1, 6..7, 15..16]),
            "e = { A = \"*\", B = \"*\" } # *"
        );
        assert_eq!(shown("[a.\"b c\".d] # x", 10..11, &[3..8, 10..11]), "[a.\"b c\".d] # *");
        assert_eq!(shown("[\"x\", { k = \"y\" }]", 8..9, &[8..9]), "[\"*\", { k = \"*\" }]");
    }

    #[test]
    fn a_long_line_is_cut_around_its_mark() {
        let text = format!("{} key {}", "x".repeat(500), "y".repeat(500));
        let (line, indent, width) = shown(&text, 501..504, &[501..504]);
        assert_eq!(line.chars().count(), 112);
        assert_eq!(line.chars().skip(indent).take(width).collect::<String>(), "key");
        let (line, indent, width) = shown(&text, 0..1000, &[]);
        assert_eq!((line.chars().count(), indent, width), (111, 0, 110));
        let (line, indent, width) = shown(&text, 6..1000, &[]);
        assert_eq!((line.chars().count(), indent, width), (111, 6, 104), "no mark goes on behind the line");
    }

    #[test]
    fn a_line_is_cut_once_more_where_there_is_less_room() {
        let text = format!("{} key {}", "x".repeat(70), "y".repeat(500));
        let excerpt = excerpt(&text, 71..74, &[71..74], &[]);
        for columns in [20, 40, 60] {
            let (line, indent, width) = excerpt.within(columns);
            assert!(line.chars().count() <= columns && line.starts_with('…') && line.ends_with('…'), "{line}");
            assert_eq!(line.chars().skip(indent).take(width).collect::<String>(), "key");
        }
        let whole = (excerpt.shown.clone(), excerpt.indent, excerpt.width);
        assert_eq!([excerpt.within(usize::MAX), excerpt.within(5)], [whole.clone(), whole]);
    }

    #[test]
    fn places_are_counted_in_characters_and_never_out_of_bounds() {
        let found = excerpt("é\té = 1", 5..6, &[5..6], &[]);
        assert_eq!((found.line, found.column, found.shown.as_str()), (1, 4, "* * = *"));
        for (text, mark) in [("", 0..0), ("", 5..9), ("a\n", 2..3), ("é", 1..1), ("a\r\nb", 1..2)] {
            assert_eq!(excerpt(text, mark, &[], &[]).width, 1);
        }
    }
}
