//! What a child writes to stdout that is no message, as long as none was one: counted, and the first line kept.

use super::diagnosis;
use crate::health::Cause;
use crate::secrets::{decoded, mask, printable};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// So much of the first line is kept.
const BYTES_MAX: usize = 300;

/// The lines that are no messages, until one is.
#[derive(Debug, Default)]
pub(crate) struct StrayOutput(Mutex<Option<(u32, String)>>);

impl StrayOutput {
    /// A line that is no message.
    pub(crate) fn heard(&self, line: &[u8]) {
        let mut known = self.lock();
        let begins = || {
            let line = decoded(&line[..line.len().min(BYTES_MAX + mask::margin())]);
            printable(&mask::masked_and_cut(&line, BYTES_MAX))
        };
        known.get_or_insert_with(|| (0, begins())).0 += 1;
    }

    /// A message has come: what else there is belongs to the best.
    pub(crate) fn is_over(&self) {
        *self.lock() = None;
    }

    /// What is added to a cause; nothing where nothing but messages has come.
    pub(crate) fn told(&self) -> Cause {
        let (lines, first) = match &*self.lock() {
            None => return Cause::default(),
            Some((1, first)) => (String::new(), diagnosis::of_stdout(first)),
            Some((count, first)) => (format!(" ({count} lines)"), diagnosis::of_stdout(first)),
        };
        let said = format!("; it prints other things than MCP to stdout{lines}");
        Cause::default().own(&said).foreign(&first).own("; logs belong on stderr")
    }

    fn lock(&self) -> MutexGuard<'_, Option<(u32, String)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_no_messages_are_told_with_the_first_until_a_message_comes() {
        let noise = StrayOutput::default();
        assert!(noise.told().is_empty());
        noise.heard(b"Listening on 3000\x1b\r");
        let one =
            "; it prints other things than MCP to stdout, first: \"Listening on 3000\\u{1b}\"; logs belong on stderr";
        assert_eq!(noise.told().full(), one);
        assert!(!noise.told().public().contains("Listening"));
        noise.heard(&[b'x'; 5000]);
        let told = noise.told();
        assert!(told.full().contains("to stdout (2 lines), first: ") && told.full().contains("Listening"));
        noise.is_over();
        assert!(noise.told().is_empty());
    }
}
