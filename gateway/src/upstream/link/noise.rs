//! What a child writes to stdout that is no message, as long as none was one: counted, and the first line kept.

use super::own_words;
use super::stderr::printable;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// So much of the first line is kept.
const BYTES_MAX: usize = 300;

/// The lines that are no messages, until one is.
#[derive(Debug, Default)]
pub(crate) struct Noise(Mutex<Option<(u32, String)>>);

impl Noise {
    /// A line that is no message.
    pub(super) fn heard(&self, line: &[u8]) {
        let mut known = self.lock();
        let begins = || printable(&String::from_utf8_lossy(&line[..line.len().min(BYTES_MAX)]));
        known.get_or_insert_with(|| (0, begins())).0 += 1;
    }

    /// A message has come: what else there is belongs to the best.
    pub(super) fn is_over(&self) {
        *self.lock() = None;
    }

    /// What is added to a cause; nothing where nothing but messages has come.
    pub(crate) fn told(&self) -> String {
        let (lines, first) = match &*self.lock() {
            None => return String::new(),
            Some((1, first)) => ("a line that is no MCP message".to_owned(), own_words::of_stdout(first)),
            Some((count, first)) => (format!("{count} lines that are no MCP messages"), own_words::of_stdout(first)),
        };
        format!("; its stdout has {lines} (what it logs belongs on stderr){first}")
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
        let noise = Noise::default();
        assert_eq!(noise.told(), "");
        noise.heard(b"Listening on 3000\x1b\r");
        let one = "; its stdout has a line that is no MCP message (what it logs belongs on stderr); the first line on stdout that is \
            none: Listening on 3000\u{fffd}";
        assert_eq!(noise.told(), one);
        noise.heard(&[b'x'; 5000]);
        assert!(noise.told().contains("has 2 lines that are no MCP messages") && noise.told().contains("Listening"));
        noise.is_over();
        assert_eq!(noise.told(), "");
    }
}
