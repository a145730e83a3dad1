//! The journal: what an upstream saw and did, told to the test as it happens; and the orders that a test gives.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::Mutex;

use crate::script::Rule;
use crate::tape::Tape;

/// Something that happened to an upstream.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Event {
    /// The number of its process, from 0; each restart counts one up.
    #[serde(default)]
    pub instance: usize,
    /// Microseconds since the epoch, by the upstream's own clock reading.
    pub at: u64,
    /// What it was.
    pub what: What,
}

/// What can happen to an upstream.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum What {
    /// It runs; sent before anything is read.
    Started {
        /// Its process id.
        pid: u32,
    },
    /// It received a frame.
    Frame {
        /// The bytes.
        raw: String,
        /// Over HTTP: the request's headers.
        headers: Vec<(String, String)>,
    },
    /// It received an HTTP request without a body (`GET`, `DELETE`).
    Visit {
        /// The HTTP method.
        method: String,
        /// The request's headers.
        headers: Vec<(String, String)>,
    },
    /// It ran a tool; sent before the answer is. A call that carried no nonce leaves the id of its request.
    Executed {
        /// The call's nonce.
        nonce: String,
    },
    /// A call of `wait`, or an [`crate::script::Act::Gate`], now waits.
    Waiting {
        /// The gate's name.
        gate: String,
        /// The raw id of the request.
        id: String,
    },
    /// A call in progress was cancelled.
    Cancelled {
        /// The raw id of the call.
        id: String,
        /// `notification` or `stream`.
        how: String,
    },
    /// It asks a question; told before it is sent.
    Asked {
        /// The question's raw id; in the stateless era that of the call.
        id: String,
        /// Its method.
        method: String,
        /// For whom it asks.
        who: String,
    },
    /// An answer to a question of its own came.
    Answered {
        /// The question's raw id.
        id: String,
        /// `{"answer":…}` or `{"error":…}`.
        body: String,
    },
    /// It withdrew a question.
    Withdrawn {
        /// The question's raw id.
        id: String,
    },
    /// It opened a stream on which changes are told: what a listen call asked for, nothing for a GET stream.
    Listening(String),
    /// Its peer broke the protocol.
    Complaint(String),
    /// The answer to [`Order::Report`].
    Report {
        /// How many calls ran.
        calls: u64,
        /// How many nonces it saw more than once.
        doubled: u64,
    },
    /// Its stdin ended.
    Eof,
    /// It was told to end by SIGTERM.
    Term,
    /// Its process is gone; added by the harness.
    Gone,
}

/// What a test tells an upstream to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Order {
    /// Lets one waiting call or gate of this name go on.
    Release(String),
    /// Lets every call and gate of this name go on, now and later.
    Open(String),
    /// Sends a notification that belongs to no call: its method and parameters (JSON text).
    Notify(String, String),
    /// The same, in one session of an upstream over HTTP.
    NotifyIn(String, String, String),
    /// Asks these questions (a plan) outside of any call, for somebody.
    Ask(String, String),
    /// Adds a tool of this name, and says that the list has changed.
    AddTool(String),
    /// Adds a tool for those alone that declare a capability, or for those that do not, and says so to them: handshake sessions.
    AddToolFor(String, bool, String),
    /// Writes these bytes as they are (stdio).
    Write(String),
    /// Puts these rules in place of the present ones.
    Rules(Vec<Rule>),
    /// HTTP: forgets all sessions.
    ForgetSessions,
    /// The same, and their ids are counted from this one again.
    CountAnew(u64),
    /// Ends the process with this status.
    Exit(i32),
    /// Asks for an [`What::Report`].
    Report,
    /// A child: begins to read; it has all lasting orders by then. Given by the harness.
    Begin,
}

/// Where events go.
#[derive(Clone)]
pub enum Journal {
    /// Nowhere.
    Off,
    /// To a tape in this process.
    Here(Arc<Tape<Event>>),
    /// To the test in another process. Written before the deed goes on, so that a killed process has told all it did.
    There(Arc<Mutex<OwnedWriteHalf>>),
}

impl Journal {
    /// Tells of an event, now.
    pub async fn tell(&self, what: What) {
        let event = Event { instance: 0, at: now(), what };
        match self {
            Journal::Off => {}
            Journal::Here(tape) => tape.push(event),
            Journal::There(socket) => {
                let mut line = serde_json::to_vec(&event).expect("an event is plain data");
                line.push(b'\n');
                // A test that is over no longer listens; the upstream ends soon after.
                let _ = socket.lock().await.write_all(&line).await;
            }
        }
    }
}

/// Microseconds since the epoch.
#[must_use]
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970");
    u64::try_from(since.as_micros()).expect("fits for half a million years")
}
