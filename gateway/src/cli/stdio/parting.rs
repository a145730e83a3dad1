//! The client leaves by closing stdin. From then on everything has an end, whatever it waits for.

use std::cell::OnceCell;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::cli::process::{Input, OtherEnd};

/// So long what the client has asked for before is still served: the gateway has its own time for what runs, and a moment more.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// When the client has left.
pub(super) struct Parting {
    stdin: OtherEnd,
    since: OnceCell<Instant>,
}

impl Parting {
    /// Of the client at this end.
    pub(super) fn of(stdin: &Input) -> Self {
        Self { stdin: stdin.other_end(), since: OnceCell::new() }
    }

    /// All that it has sent was read.
    pub(super) fn begin(&self) {
        self.since.get_or_init(Instant::now);
    }

    /// Whether it is known to have left.
    pub(super) fn has_begun(&self) -> bool {
        self.since.get().is_some()
    }

    /// Resolves once the client has left and had its time. It is known at once, whatever of it was not read yet.
    pub(super) async fn over(&self) {
        if !self.has_begun() {
            self.stdin.closed().await;
        }
        sleep_until(*self.since.get_or_init(Instant::now) + LAST_WORDS).await;
    }

    /// What comes of something, unless this is over before. What is done at once costs nothing more.
    pub(super) async fn before_over<T>(&self, what: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = what => Some(done),
            () = self.over() => None,
        }
    }
}
