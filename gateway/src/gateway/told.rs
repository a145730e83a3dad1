//! Who tells the process to end: SIGTERM, SIGINT; a hang-up of the terminal is not meant for us.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Hears the signals from when it is made.
pub struct Told {
    terminate: Signal,
    interrupt: Signal,
    /// Heard, and so without effect.
    _hangup: Signal,
}

impl Told {
    /// Starts to hear.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            _hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Resolves when the process is told to end, each time anew.
    pub async fn to_end(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
