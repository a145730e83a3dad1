//! A history: what happened in a run, as plain data that the judge reads.

use std::time::Duration;

/// Everything that the seven invariants are held against.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Every call that was made.
    pub made: Vec<Made>,
    /// What the clients held against their peer.
    pub complaints: Vec<String>,
    /// The nonce of each call that ran, by the upstreams' own log.
    pub ran: Vec<String>,
    /// The same, each with when it began to run, in microseconds since the epoch.
    pub ran_at: Vec<(String, u64)>,
    /// The calls of earlier histories that ended without an answer of their own.
    pub over: Vec<Over>,
    /// The most memory that the gateway was seen with, and what it may have, in KiB.
    pub peak: Option<(u64, u64)>,
    /// What all secrets of the gateway's configuration have in common: none of them may be told to anybody, in any form.
    pub canaries: Vec<String>,
    /// What the gateway shows and keeps beside its answers and its log, each with where.
    pub pages: Vec<(String, String)>,
    /// The times in which one principal held all that it could get.
    pub sieges: Vec<Siege>,
    /// What the healthy upstreams were before, and are after.
    pub kept: Vec<Kept>,
    /// What still runs at upstreams that are well though whoever called has given it up, in words.
    pub unwithdrawn: Vec<String>,
    /// What the gateway held before, and holds after.
    pub stands: Option<(Census, Census)>,
    /// The lines on stdout where that is a transport.
    pub stdout: Vec<String>,
    /// The lines on stderr, each with when it came.
    pub stderr: Vec<(Duration, String)>,
    /// How each fault was seen from outside.
    pub sights: Vec<Sight>,
}

/// A time in which one principal held all that it could get of something, and others called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Siege {
    /// Of what.
    pub of: String,
    /// How much of it.
    pub held: usize,
    /// From when to when, in microseconds since the epoch.
    pub time: (u64, u64),
    /// Each other principal, and what came of a new client of it that went through a whole session.
    pub others: Vec<(String, Result<Duration, String>)>,
}

/// A call that ended without an answer of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Over {
    /// Its nonce.
    pub nonce: String,
    /// When it ended, in microseconds since the epoch.
    pub at: u64,
    /// Whether its caller was told that nothing of it was sent.
    pub is_unsent: bool,
}

/// One call of a tool that echoes its nonce.
#[derive(Clone, Debug)]
pub struct Made {
    /// Whose tool.
    pub upstream: String,
    /// Whether that upstream had a fault at any moment of the call that may cost it its answer.
    pub may_fail: bool,
    /// Whether its client gave it up: it need have no outcome then, and never has another's.
    pub given_up: bool,
    /// The raw id it was sent with.
    pub id: String,
    /// Its nonce.
    pub nonce: String,
    /// How long it took.
    pub took: Duration,
    /// How long it may take; nothing where it has no deadline.
    pub deadline: Option<Duration>,
    /// Its outcomes.
    pub ends: Vec<End>,
    /// Which client made it.
    pub caller: usize,
    /// For which principal.
    pub principal: &'static str,
    /// When it ended, in microseconds since the epoch.
    pub ended: u64,
}

impl Made {
    /// Whether it has one answer, and that is a result.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        matches!(self.ends.as_slice(), [End::Result { .. }])
    }

    /// Whether it began and ended within this time.
    #[must_use]
    pub fn is_within(&self, (begin, end): (u64, u64)) -> bool {
        let took = u64::try_from(self.took.as_micros()).unwrap_or(u64::MAX);
        self.ended <= end && self.ended.saturating_sub(took) >= begin
    }

    /// Where it has no answer of its own: that it is over.
    #[must_use]
    pub fn over(&self) -> Option<Over> {
        let is_unsent = match self.ends.as_slice() {
            [] | [End::Closed] => false,
            [End::Error { message, .. }] => message.contains("was not sent"),
            _ => return None,
        };
        Some(Over { nonce: self.nonce.clone(), at: self.ended, is_unsent })
    }
}

/// An outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// A result under this raw id with this nonce.
    Result {
        /// The raw id.
        id: String,
        /// The nonce in it, if there was one.
        nonce: Option<String>,
    },
    /// An error under this raw id.
    Error {
        /// The raw id.
        id: String,
        /// Its text.
        message: String,
        /// Its data, raw.
        data: String,
    },
    /// The connection ended.
    Closed,
}

/// What a healthy upstream is: the ids of its processes, or of its sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Its name.
    pub upstream: String,
    /// Before.
    pub before: Vec<String>,
    /// After.
    pub after: Vec<String>,
}

/// What the gateway holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Its children that live.
    pub children: usize,
    /// Its children that have ended and were not reaped.
    pub zombies: usize,
    /// Its open files.
    pub files: usize,
    /// Its threads.
    pub threads: usize,
    /// Its tasks.
    pub tasks: usize,
    /// What waits for an answer, in any table.
    pub pending: usize,
    /// Its sessions.
    pub sessions: usize,
    /// Its resident memory.
    pub resident_kib: u64,
}

/// How a fault was seen from outside; nothing stands for "was not looked for".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sight {
    /// The fault.
    pub fault: String,
    /// On the page of the upstreams' health.
    pub page: Option<bool>,
    /// In the metrics.
    pub metric: Option<bool>,
    /// In a line of the log that names the upstream.
    pub line: Option<bool>,
    /// Whether page and metrics say that it is over.
    pub clears: Option<bool>,
}
