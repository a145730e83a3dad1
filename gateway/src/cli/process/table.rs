//! Tables for a terminal: a column that tells less goes before the last one is too narrow to be read.

use std::io;
use std::os::fd::AsFd;

use rustix::termios::{isatty, tcgetwinsize};

use crate::config::fault::Layout;

/// So much of the last column is kept as long as another can go.
const LAST_COLUMNS_MIN: usize = 40;
/// Between two columns.
const GAP: usize = 2;
/// A text goes on in the next line where that has so much room for it.
const WRAPPED_COLUMNS_MIN: usize = 24;

/// How wide a line may be, and whether it may have colour.
#[derive(Clone, Copy)]
pub(crate) struct Room {
    pub(crate) columns: usize,
    pub(crate) has_colour: bool,
}

impl Room {
    /// What stdout has: a pipe takes lines as long as they are.
    pub(crate) fn of_stdout() -> Self {
        Self::of(io::stdout())
    }

    /// What stderr has.
    pub(crate) fn of_stderr() -> Self {
        Self::of(io::stderr())
    }

    /// How faults are laid out in it.
    pub(crate) fn layout(self) -> Layout {
        Layout { columns: self.columns, wrapped }
    }

    fn of(stream: impl AsFd) -> Self {
        if !isatty(&stream) {
            return Self { columns: usize::MAX, has_colour: false };
        }
        let columns = tcgetwinsize(&stream).map_or(0, |size| usize::from(size.ws_col));
        Self { columns: if columns == 0 { usize::MAX } else { columns }, has_colour: may_colour() }
    }
}

/// Whether the person wants colour.
pub(crate) fn may_colour() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty())
        && std::env::var_os("CLICOLOR").is_none_or(|set| set != "0")
        && obeys()
}

/// Whether a terminal obeys anything but the end of a line.
pub(crate) fn obeys() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Rows below headings, as lines; `goes` are the columns that go where there is no room, the first one first. `state` is the column with
/// a colour.
pub(crate) fn table(rows: &[Vec<String>], goes: &[usize], state: Option<usize>, columns: usize) -> Vec<Line> {
    let count = rows.first().map_or(0, Vec::len);
    let width = |at: usize| rows.iter().map(|row| wide(&row[at])).max().unwrap_or_default();
    let widths: Vec<usize> = (0..count).map(width).collect();
    let mut kept: Vec<usize> = (0..count).collect();
    for gone in goes {
        let Some((last, others)) = kept.split_last() else { break };
        let before: usize = others.iter().map(|at| widths[*at] + GAP).sum();
        if before + widths[*last].min(LAST_COLUMNS_MIN) <= columns {
            break;
        }
        kept.retain(|at| at != gone);
    }
    let of = |(number, row): (usize, &Vec<String>)| {
        let colour = match state {
            _ if number == 0 => Colour::Head,
            Some(state) => Colour::of(&row[state]),
            None => Colour::None,
        };
        let cells: Vec<String> = kept.iter().map(|at| row[*at].clone()).collect();
        let widths: Vec<usize> = kept.iter().map(|at| widths[*at]).collect();
        let coloured = kept.iter().position(|at| Some(*at) == state).unwrap_or(usize::MAX);
        Line::table(&cells, &widths, coloured, colour)
    };
    rows.iter().enumerate().map(of).collect()
}

/// The same as one text.
pub(crate) fn printed(rows: &[Vec<String>], goes: &[usize], state: Option<usize>, room: Room) -> String {
    let lines = table(rows, goes, state, room.columns);
    lines.iter().map(|line| format!("{}\n", line.cut(room.columns, room.has_colour).trim_end())).collect()
}

/// What a state looks like. Dark and light terminals show all of these: yellow is pale on white, as white and the bright colours are, and
/// the plain red of some is dim on black.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Colour {
    None,
    Head,
    Good,
    Odd,
    Bad,
}

impl Colour {
    /// That of a state.
    pub(crate) fn of(state: &str) -> Self {
        match state {
            "ready" => Self::Good,
            "idle" | "stopped" => Self::None,
            "failed" | "backing_off" => Self::Bad,
            _ => Self::Odd,
        }
    }

    /// What makes a terminal show it; empty where nothing is to be shown.
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Head => "\x1b[1m",
            Self::Good => "\x1b[32m",
            Self::Odd => "\x1b[1m",
            Self::Bad => "\x1b[1;31m",
        }
    }
}

/// A line, of which a part has a colour.
pub(crate) struct Line {
    parts: Vec<(String, Colour)>,
}

impl Line {
    pub(crate) fn plain(text: String) -> Self {
        Self { parts: vec![(text, Colour::None)] }
    }

    /// Cells in columns; one of them has the colour, and a heading all.
    pub(crate) fn table(cells: &[String], widths: &[usize], coloured: usize, colour: Colour) -> Self {
        let last = cells.iter().rposition(|cell| !cell.is_empty()).unwrap_or_default();
        let of = |(at, (cell, width)): (usize, (&String, &usize))| {
            let colour = if at == coloured || colour == Colour::Head { colour } else { Colour::None };
            let pad = " ".repeat(width.saturating_sub(wide(cell)) + 2);
            let text = if at == last { cell.clone() } else { format!("{cell}{pad}") };
            (text, colour)
        };
        Self { parts: cells.iter().zip(widths).enumerate().take(last + 1).map(of).collect() }
    }

    /// As much of it as there is room for.
    pub(crate) fn cut(&self, width: usize, has_colour: bool) -> String {
        let all: usize = self.parts.iter().map(|(text, _)| wide(text)).sum();
        let is_cut = all > width;
        let mut room = if is_cut { width.saturating_sub(1) } else { width };
        let mut out = String::new();
        for (text, colour) in &self.parts {
            let fits = |char: char| {
                let fits = columns(char) <= room;
                room = if fits { room - columns(char) } else { 0 };
                fits.then_some(char)
            };
            let shown: String = text.chars().map_while(fits).collect();
            if shown.is_empty() {
                continue;
            }
            let code = if has_colour { colour.code() } else { "" };
            match code {
                "" => out.push_str(&shown),
                code => out.push_str(&format!("{code}{shown}\x1b[0m")),
            }
        }
        if is_cut && width > 0 {
            out.push('…');
        }
        out
    }
}

/// A text in lines of so many columns, which end between words; all but the first begin with so many blanks.
pub(crate) fn wrapped(text: &str, indent: usize, columns: usize) -> String {
    if wide(text) <= columns || columns < indent + WRAPPED_COLUMNS_MIN {
        return text.to_owned();
    }
    let (mut out, mut used) = (String::new(), 0);
    for word in text.split_inclusive(' ') {
        if used > indent && used + wide(word.trim_end()) > columns {
            out.truncate(out.trim_end().len());
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            used = indent;
        }
        out.push_str(word);
        used += wide(word);
    }
    out
}

/// The same for a text of several lines, each of which goes on behind two blanks more than it begins with.
pub(crate) fn fitted(text: &str, columns: usize) -> String {
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len() + 2;
    let ending = |line: &str| if line.ends_with('\n') { "\n" } else { "" };
    let lines = text.split_inclusive('\n');
    lines.map(|line| wrapped(line.trim_end_matches('\n'), indent(line), columns) + ending(line)).collect()
}

/// So many columns a text takes on a terminal.
pub(crate) fn wide(text: &str) -> usize {
    text.chars().map(columns).sum()
}

/// Marks that are put on the character before take none; those of East Asia, and pictures, take two.
fn columns(char: char) -> usize {
    match char {
        '\u{300}'..='\u{36f}'
        | '\u{483}'..='\u{489}'
        | '\u{591}'..='\u{5bd}'
        | '\u{610}'..='\u{61a}'
        | '\u{64b}'..='\u{65f}'
        | '\u{1ab0}'..='\u{1aff}'
        | '\u{1dc0}'..='\u{1dff}'
        | '\u{20d0}'..='\u{20ff}'
        | '\u{fe20}'..='\u{fe2f}' => 0,
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{303e}'
        | '\u{3041}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f300}'..='\u{1f64f}'
        | '\u{1f680}'..='\u{1f6ff}'
        | '\u{1f900}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_to_the_width_and_colours_take_no_room() {
        let cells = ["ab", "ready", "what is wrong"].map(str::to_owned);
        let line = Line::table(&cells, &[4, 6, 20], 1, Colour::Good);
        assert_eq!(line.cut(80, false), "ab    ready   what is wrong");
        assert_eq!(line.cut(12, false), "ab    ready…");
        assert_eq!(line.cut(12, true), "ab    \u{1b}[32mready\u{1b}[0m…");
        assert_eq!(line.cut(0, false), "");
        assert_eq!(Line::plain("äöü".to_owned()).cut(3, true), "äöü");
        assert_eq!(Line::plain("日本語です".to_owned()).cut(6, true), "日本…");
        assert_eq!(wide("e\u{301}日🦀"), 5);
        let cells = ["日本", "ready", "x"].map(str::to_owned);
        assert_eq!(Line::table(&cells, &[6, 5, 1], 1, Colour::None).cut(80, false), "日本    ready  x");
    }

    #[test]
    fn a_long_text_goes_on_below_between_words() {
        let text = "cause       it exited with status 1 after it had said a word of its own";
        let lines =
            ["cause       it exited with status 1", "            after it had said a word of", "            its own"];
        assert_eq!(wrapped(text, 12, 40), lines.join("\n"));
        assert_eq!(wrapped(text, 12, usize::MAX), text, "a pipe takes lines as long as they are");
        assert_eq!(wrapped(text, 12, 30), text, "there is too little room beside the blanks");
        assert_eq!(
            fitted(&format!("error:\n {text}\n\n"), 42),
            "error:\n cause       it exited with status 1 after\n   it had said a word of its own\n\n"
        );
        let path = format!("see {} there", "x".repeat(60));
        assert_eq!(wrapped(&path, 3, 40), format!("see\n   {}\n   there", "x".repeat(60)), "no word is broken");
        assert_eq!(
            wrapped("日本語 日本語 日本語 日本語 日本語 日本語", 0, 24),
            "日本語 日本語 日本語\n日本語 日本語 日本語"
        );
    }

    #[test]
    fn states_are_readable_on_dark_and_light_terminals() {
        // Bold, red, green, magenta and the way back: neither a colour that is that of some background nor a background.
        let readable = ["0", "1", "31", "32", "35"];
        for state in ["ready", "idle", "stopped", "failed", "backing_off", "starting", "stopping", "degraded", "any"] {
            let line = Line::table(&[state.to_owned()], &[0], 0, Colour::of(state)).cut(80, true);
            let codes = line.split("\x1b[").skip(1).filter_map(|rest| rest.split_once('m'));
            for code in codes.flat_map(|(codes, _)| codes.split(';')) {
                assert!(readable.contains(&code), "{state}: {line:?}");
            }
            assert!(line.contains(state), "the word says it, too: {line:?}");
        }
    }

    #[test]
    fn columns_go_before_the_last_one_cannot_be_read() {
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        let rows = [
            row(["NAME", "STATE", "SINCE", "WHAT"]),
            row(["files", "ready", "1 min 1 s", ""]),
            row(["x", "failed", "2 s", "a cause that is longer than what is left of a narrow terminal"]),
        ];
        let shown = |columns: usize| -> Vec<String> {
            table(&rows, &[2, 1], Some(1), columns).iter().map(|line| line.cut(columns, false)).collect()
        };
        assert_eq!(shown(usize::MAX)[1], "files  ready   1 min 1 s");
        assert!(shown(120)[2].ends_with("terminal") && shown(66)[2].contains("2 s "), "{:?}", shown(66));
        assert_eq!(shown(60)[0], "NAME   STATE   WHAT");
        assert_eq!(shown(60)[2], "x      failed  a cause that is longer than what is left of …");
        assert_eq!(shown(40)[2], "x      a cause that is longer than what…");
        assert_eq!(shown(20)[2], "x      a cause that…");
        assert!(shown(20).iter().all(|line| line.chars().count() <= 20));
    }
}
