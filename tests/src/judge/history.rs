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
