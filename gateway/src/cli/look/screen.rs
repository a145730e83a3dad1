//! The screen of a terminal while a command has it: as it was before, whichever way that ends.

use std::io::{self, Write};

use crate::cli::process::table::{Line, may_colour};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

/// Another screen, which is left without a trace; no cursor, and no line that goes on in the next.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";
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
        let has_colour = may_colour();
        // From here on it is given back.
        let screen = Self { before, has_colour };
        written(ENTER)?;
        Ok(screen)
    }

    /// So wide it is.
    pub(super) fn columns(&self) -> usize {
        size().0
    }

    /// Shows as much of these lines as there is room for.
    pub(super) fn draw(&mut self, lines: &[Line]) -> io::Result<()> {
        written(&drawn(lines, size(), self.has_colour))
    }
}

fn size() -> (usize, usize) {
    let size = tcgetwinsize(io::stdout()).ok().map(|size| (usize::from(size.ws_col), usize::from(size.ws_row)));
    size.filter(|(width, height)| *width > 0 && *height > 0).unwrap_or(SIZE)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_lines_are_drawn_than_there_is_room_for() {
        let lines: Vec<_> = (0..9).map(|at| Line::plain(at.to_string())).collect();
        let drawn = drawn(&lines, (10, 3), false);
        assert_eq!(drawn, "\u{1b}[H0\u{1b}[K\r\n1\u{1b}[K\r\n2\u{1b}[K\u{1b}[J");
    }
}
