//! Rules: when a script leaves the ordinary, and what it does then.

use serde::{Deserialize, Serialize};

/// When something arrives that fits, do these acts in order; after the last one the ordinary answer is given, unless an
/// act has ended the matter.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Rule {
    /// The method that it is about; over HTTP `GET` and `DELETE` count as methods; `*` is any.
    pub method: String,
    /// Only for this `params.name` or `params.uri`.
    #[serde(default)]
    pub name: Option<String>,
    /// Only from the n-th fitting message on (from 1).
    #[serde(default = "one")]
    pub from: usize,
    /// Only so many times.
    #[serde(default = "always")]
    pub times: usize,
    /// What is done.
    pub acts: Vec<Act>,
}

fn one() -> usize {
    1
}

fn always() -> usize {
    usize::MAX
}

/// One thing that a script does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Act {
    /// Waits until the test releases this gate.
    Gate(String),
    /// Waits so many milliseconds.
    Delay(u64),
    /// Writes these bytes as they are (stdio), before any answer; `$ID` stands for the request's id.
    Write(String),
    /// Writes bytes that need not be text, each as two hexadecimal digits.
    WriteHex(String),
    /// Writes a line of so many bytes of one letter, then the line's end.
    WriteLong(usize),
    /// Sends so many log messages that belong to no one in particular.
    Flood(usize),
    /// As a child: writes so many lines to stderr.
    Stderr(usize),
    /// Answers in the ordinary way so many milliseconds later, also when it was told to cancel.
    Late(u64),
    /// Runs the call in the ordinary way, and keeps the answer to itself: whatever comes next, it has run.
    Run,
    /// Never answers.
    Hang,
    /// Ends the process with this status.
    Exit(i32),
    /// Answers with this error.
    Error {
        /// Its code.
        code: i64,
        /// Its text.
        message: String,
        /// Its data, as JSON text.
        data: Option<String>,
    },
    /// Answers with this result: JSON text, sent byte for byte.
    Result(String),
    /// Sends this in place of an answer: a whole frame in which `$ID` stands for the request's id, `$NONCE` for its nonce.
    Frame(String),
    /// Writes half of the ordinary answer and then nothing more (stdio: no end of line; HTTP: the stream ends).
    Half,
    /// HTTP: answers with this status, content type and body (`$ID` stands for the request's id).
    Status {
        /// The status code.
        status: u16,
        /// The content type; empty sends none.
        kind: String,
        /// The body.
        body: String,
    },
    /// Quotes what came with the call: over HTTP the request's head, as a child its environment.
    Quote(Quoting),
    /// HTTP: opens a stream of events and ends it without the answer.
    Cut,
    /// HTTP, resumable: ends the stream after its first event id; the answer waits for the one who resumes.
    CutToResume,
}

/// Where an upstream quotes what it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Quoting {
    /// HTTP: in the body of this status.
    Status(u16),
    /// HTTP: in the `Location` of a redirect.
    Location,
    /// HTTP: in the `WWW-Authenticate` of a 401.
    Challenge,
    /// In message and data of a JSON-RPC error.
    Error,
    /// As a child: on stderr, before the ordinary answer.
    Stderr,
    /// As a child: in a line on stdout that is no message, before the ordinary answer.
    Stdout,
    /// As a child: in its last words on stderr.
    Exit,
}

impl Rule {
    /// A rule for every message of a method.
    #[must_use]
    pub fn on(method: &str, acts: Vec<Act>) -> Rule {
        Rule { method: method.into(), name: None, from: one(), times: always(), acts }
    }

    /// A rule for calls of one tool.
    #[must_use]
    pub fn on_tool(name: &str, acts: Vec<Act>) -> Rule {
        Rule { name: Some(name.into()), ..Rule::on("tools/call", acts) }
    }

    /// The same, but only for the first fitting message.
    #[must_use]
    pub fn once(mut self) -> Rule {
        self.times = 1;
        self
    }

    /// The same, but only from the n-th fitting message on.
    #[must_use]
    pub fn from_nth(mut self, nth: usize) -> Rule {
        self.from = nth;
        self
    }

    /// Whether it is about such a message.
    #[must_use]
    pub fn fits(&self, method: &str, name: Option<&str>) -> bool {
        (self.method == "*" || self.method == method) && self.name.as_deref().is_none_or(|wanted| name == Some(wanted))
    }
}

impl Act {
    /// An error without data.
    #[must_use]
    pub fn error(code: i64, message: &str) -> Act {
        Act::Error { code, message: message.into(), data: None }
    }

    /// An HTTP answer.
    #[must_use]
    pub fn status(status: u16, kind: &str, body: &str) -> Act {
        Act::Status { status, kind: kind.into(), body: body.into() }
    }
}
