//! Who tells the process to end: SIGTERM, SIGINT; a hang-up of the terminal is not meant for us.

use std::io;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

/// What comes so soon behind is the same word once more: `timeout` tells the process and its whole group.
const ONCE: Duration = Duration::from_millis(500);

/// Hears the signals from when it is made.
pub struct ShutdownSignals {
    terminate: Signal,
    interrupt: Signal,
    /// Heard, and so without effect.
    _hangup: Signal,
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
            _hangup: signal(SignalKind::hangup())?,
            words: Words::default(),
        })
    }

    /// Resolves when the process is told to end, each time anew.
    pub async fn to_end(&mut self) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => {}
                _ = self.interrupt.recv() => {}
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
