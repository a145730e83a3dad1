//! Who tells the process to end: SIGTERM, SIGINT, and the end of the terminal that shows its log. SIGHUP alone means something else.

use std::io::{self, IsTerminal};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

/// What comes so soon behind is the same word once more: `timeout` tells the process and its whole group.
const ONCE: Duration = Duration::from_millis(500);

/// Hears the signals from when it is made.
pub struct ShutdownSignals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    /// Whether a person sees what it says: a gateway whose terminal was closed would run on where nobody looks for it.
    is_seen: bool,
    words: Words,
}

/// When it was told.
#[derive(Default)]
struct Words(Option<Instant>);

impl Words {
    /// Whether what comes now is a word of its own.
    fn is_new(&mut self, now: Instant) -> bool {
        let is_new = self.0.is_none_or(|last| now.duration_since(last) >= ONCE);
        if is_new {
            self.0 = Some(now);
        }
        is_new
    }
}

impl ShutdownSignals {
    /// Starts to hear.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            is_seen: io::stderr().is_terminal(),
            words: Words::default(),
        })
    }

    /// Resolves when the process is told to end, each time anew.
    pub async fn to_end(&mut self) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => {}
                _ = self.interrupt.recv() => {}
                // What was hung up is no terminal any more.
                _ = self.hangup.recv() => if !self.is_seen || io::stderr().is_terminal() { continue },
            }
            if self.words.is_new(Instant::now()) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_comes_twice_at_once_is_one_word_and_a_later_one_is_another() {
        let (mut words, begun) = (Words::default(), Instant::now());
        let told = [0, 0, 2, 499, 500, 501, 2000].map(|at| words.is_new(begun + Duration::from_millis(at)));
        assert_eq!(told, [true, false, false, false, true, false, true]);
    }
}
