//! Lines of frames, read one by one within the memory that there is.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::memory::Gather;
use crate::memory::account::Kind;
use crate::memory::budget::Budget;
use crate::protocol::framing::lines::{Line, Lines};

/// What lines are read from. It can be dropped wherever it waits, and goes on where it was.
pub(super) struct Reader<R> {
    input: R,
    lines: Lines<Gather>,
    held: Option<Line>,
    is_over: bool,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    /// Lines of at most `max` bytes.
    pub(super) fn new(input: R, budget: &Budget, max: usize) -> Self {
        let lines = Lines::new(max, Gather::new(budget, Kind::Body, max));
        Self { input, lines, held: None, is_over: false }
    }

    /// Whether a line comes, which the next look finds; not so at the end.
    pub(super) async fn comes(&mut self) -> io::Result<bool> {
        self.held = self.next().await?;
        Ok(self.holds())
    }

    /// Whether a line lies here that was waited for.
    pub(super) fn holds(&self) -> bool {
        self.held.is_some()
    }

    /// The next line; `None` at the end.
    pub(super) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            match self.held.take().or_else(|| self.lines.next_line()) {
                // It is told of at its end, once.
                Some(Line::Untaken { tail: None, .. }) => continue,
                Some(line) => return Ok(Some(line)),
                None if self.is_over => return Ok(None),
                None => {}
            }
            let read = match self.lines.reading() {
                (buffer, None) => self.input.read_buf(buffer).await?,
                (buffer, Some(gather)) => tokio::select! {
                    biased;
                    () = gather.lost() => {
                        self.held = Some(self.lines.give_up());
                        continue;
                    }
                    read = self.input.read_buf(buffer) => read?,
                },
            };
            if read == 0 {
                self.is_over = true;
                self.held = self.lines.last();
            }
        }
    }
}
