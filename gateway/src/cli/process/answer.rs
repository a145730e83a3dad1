//! What a command answers on stdout: what cannot be written is said as that, once, and a reader that has gone needs no word.

use std::error::Error;
use std::fmt;
use std::io::{self, StdoutLock, Write};

use crate::secrets::visible_json;

/// Stdout of a command that answers and ends.
pub(crate) struct Answer(StdoutLock<'static>);

/// Where a command's answer goes.
pub(crate) fn answer() -> Answer {
    Answer(io::stdout().lock())
}

impl Answer {
    /// A JSON text, in which nothing is left that a terminal would obey or not show: it may hold the words of others.
    pub(crate) fn json(&mut self, text: &str) -> io::Result<()> {
        writeln!(self, "{}", visible_json(text.trim_end()))
    }
}

/// The answer could not be written.
#[derive(Debug)]
struct Unwritten(io::Error);

impl fmt::Display for Unwritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stdout cannot be written: {}", self.0)
    }
}

impl Error for Unwritten {}

impl Write for Answer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(unwritten)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(unwritten)
    }
}

/// One that was interrupted is written again by whoever writes.
fn unwritten(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::Interrupted => error,
        kind => io::Error::new(kind, Unwritten(error)),
    }
}

/// Whether it failed because nobody reads the answer any more, as behind `| head`.
pub(super) fn is_unread(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe && error.get_ref().is_some_and(|inner| inner.is::<Unwritten>())
}
