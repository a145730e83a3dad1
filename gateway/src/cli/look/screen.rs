//! The screen of a terminal while a command has it: as it was before, whichever way that ends.

use std::io::{self, Write};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

/// Another screen, which is left without a trace; no cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// From the first line on, each line to its end.
const HOME: &str = "\x1b[H";
const REST_OF_LINE: &str = "\x1b[K";
const REST_OF_SCREEN: &str = "\x1b[J";
/// Where a terminal does not say how large it is.
const SIZE: (usize, usize) = (80, 24);

/// The screen. Dropping it gives it back.
pub(super) struct Screen {
    before: Option<Termios>,
    has_colour: bool,
}

impl Screen {
    /// Takes it: keys are read as they are typed, and not shown.
    pub(super) fn take() -> io::Result<Self> {
        let before = tcgetattr(io::stdin()).ok();
        if let Some(before) = &before {
            let mut own = before.clone();
            own.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
            tcsetattr(io::stdin(), OptionalActions::Now, &own)?;
        }
        let has_colour = std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty());
        // From here on it is given back.
        let screen = Self { before, has_colour };
        written(ENTER)?;
        Ok(screen)
    }

    /// Shows as much of these lines as there is room for.
    pub(super) fn draw(&mut self, lines: &[Line]) -> io::Result<()> {
        let size = tcgetwinsize(io::stdout()).ok().map(|size| (usize::from(size.ws_col), usize::from(size.ws_row)));
        let (width, height) = size.filter(|(width, height)| *width > 0 && *height > 0).unwrap_or(SIZE);
        written(&drawn(lines, (width, height), self.has_colour))
    }
}

/// One write of the whole screen, so that nothing flickers.
fn drawn(lines: &[Line], (width, height): (usize, usize), has_colour: bool) -> String {
    let mut out = HOME.to_owned();
    for (at, line) in lines.iter().take(height).enumerate() {
        if at > 0 {
            out.push_str("\r\n");
        }
        out.push_str(&line.cut(width, has_colour));
        out.push_str(REST_OF_LINE);
    }
    out + REST_OF_SCREEN
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Where the terminal is gone there is nothing to give back.
        let _ = written(LEAVE);
        if let Some(before) = &self.before {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}

fn written(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// What a state looks like.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Colour {
    None,
    Head,
    Good,
    Odd,
    Bad,
}

impl Colour {
    /// That of a state.
    pub(super) fn of(state: &str) -> Self {
        match state {
            "ready" => Self::Good,
            "idle" | "stopped" => Self::None,
            "failed" | "backing_off" => Self::Bad,
            _ => Self::Odd,
        }
    }

    fn code(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Head => "\x1b[1m",
            Self::Good => "\x1b[32m",
            Self::Odd => "\x1b[33m",
            Self::Bad => "\x1b[31m",
        }
    }
}

/// A line, of which a part has a colour.
pub(super) struct Line {
    parts: Vec<(String, Colour)>,
}

impl Line {
    pub(super) fn plain(text: String) -> Self {
        Self { parts: vec![(text, Colour::None)] }
    }

    /// Cells in columns; one of them has the colour, and a heading all.
    pub(super) fn table(cells: &[String], widths: &[usize], coloured: usize, colour: Colour) -> Self {
        let last = cells.iter().rposition(|cell| !cell.is_empty()).unwrap_or_default();
        let of = |(at, (cell, width)): (usize, (&String, &usize))| {
            let colour = if at == coloured || colour == Colour::Head { colour } else { Colour::None };
            let text = if at == last { cell.clone() } else { format!("{cell:width$}  ") };
            (text, colour)
        };
        Self { parts: cells.iter().zip(widths).enumerate().take(last + 1).map(of).collect() }
    }

    /// As much of it as there is room for.
    pub(super) fn cut(&self, width: usize, has_colour: bool) -> String {
        let all: usize = self.parts.iter().map(|(text, _)| text.chars().count()).sum();
        let is_cut = all > width;
        let mut room = if is_cut { width.saturating_sub(1) } else { width };
        let mut out = String::new();
        for (text, colour) in &self.parts {
            let shown: String = text.chars().take(room).collect();
            room -= shown.chars().count();
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
    }

    #[test]
    fn no_more_lines_are_drawn_than_there_is_room_for() {
        let lines: Vec<_> = (0..9).map(|at| Line::plain(at.to_string())).collect();
        let drawn = drawn(&lines, (10, 3), false);
        assert_eq!(drawn, "\u{1b}[H0\u{1b}[K\r\n1\u{1b}[K\r\n2\u{1b}[K\u{1b}[J");
    }
}
