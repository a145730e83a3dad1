//! Runs one official SDK with a plan, and reads its report.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::process::Command;

use crate::peers::Peers;

/// How long one run of a plan may take on a crowded machine.
const LIMIT: Duration = Duration::from_secs(300);

/// Which revision the SDK is told to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The handshake.
    Legacy,
    /// Whatever the SDK finds out.
    Auto,
    /// 2026-07-28 and nothing else.
    Pinned,
}

/// An official SDK and how it is to connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sdk {
    /// `@modelcontextprotocol/sdk` 1.x, which knows the handshake alone.
    TypeScript1,
    /// `@modelcontextprotocol/client` 2.x.
    TypeScript2(Mode),
    /// `mcp` 2.x.
    Python2(Mode),
}

impl Sdk {
    /// Every SDK in every mode.
    pub const ALL: [Self; 7] = [
        Self::TypeScript1,
        Self::TypeScript2(Mode::Legacy),
        Self::TypeScript2(Mode::Auto),
        Self::TypeScript2(Mode::Pinned),
        Self::Python2(Mode::Legacy),
        Self::Python2(Mode::Auto),
        Self::Python2(Mode::Pinned),
    ];

    /// What it must end up speaking with a peer that speaks everything.
    pub fn revision(self) -> &'static str {
        match self.mode() {
            Mode::Legacy => "2025-11-25",
            Mode::Auto | Mode::Pinned => "2026-07-28",
        }
    }

    fn mode(self) -> Mode {
        match self {
            Self::TypeScript1 => Mode::Legacy,
            Self::TypeScript2(mode) | Self::Python2(mode) => mode,
        }
    }

    fn program(self, peers: &Peers) -> Command {
        let (program, script) = match self {
            Self::TypeScript1 => (peers.node.clone(), peers.node_dir.join("sdk1.mjs")),
            Self::TypeScript2(_) => (peers.node.clone(), peers.node_dir.join("sdk2.mjs")),
            Self::Python2(_) => (peers.python_bin.join("python"), peers.python_dir.join("sdk2.py")),
        };
        let mut command = Command::new(program);
        if self == Self::TypeScript1 {
            // Its WebSocket is that of the system, which node 20 has behind a flag.
            command.arg("--experimental-websocket");
        }
        command.arg(script);
        command
    }

    /// Carries the plan out.
    ///
    /// # Panics
    /// When the driver does not end in time or prints no report, with what it said on stderr.
    pub async fn run(self, peers: &Peers, plan: &Plan) -> Report {
        let asked = Asked {
            mode: match self.mode() {
                Mode::Legacy => "legacy",
                Mode::Auto => "auto",
                Mode::Pinned => self.revision(),
            },
            patience: plan.patience.as_millis(),
            plan,
        };
        let mut command = self.program(peers);
        command.arg(serde_json::to_string(&asked).expect("a plan is JSON"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let ended = tokio::time::timeout(LIMIT, command.output()).await;
        let output = match ended {
            Ok(output) => output.expect("the driver can be run"),
            Err(_) => panic!("{self:?} did not end within {LIMIT:?}"),
        };
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let mut report: Report = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            panic!("{self:?} ended with {} and without a report ({error}); it said:\n{said}", output.status)
        });
        report.said = said;
        report
    }
}

/// What the SDK connects to.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Connect {
    /// A Streamable HTTP endpoint.
    Url {
        /// Its address.
        url: String,
    },
    /// The stream of an HTTP+SSE server.
    Sse {
        /// Its address.
        sse: String,
    },
    /// A WebSocket.
    WebSocket {
        /// Its address.
        ws: String,
    },
    /// A program that the SDK starts as its own child.
    Command {
        /// The program.
        command: PathBuf,
        /// Its arguments.
        args: Vec<String>,
        /// What is added to the few variables that an SDK hands on.
        env: BTreeMap<String, String>,
    },
}

impl Connect {
    /// The program that an entry of a host's file names.
    ///
    /// # Panics
    /// When the entry names none.
    pub fn entry(entry: &Value) -> Self {
        Self::Command {
            command: serde_json::from_value(entry["command"].clone()).expect("an entry that starts a program"),
            args: serde_json::from_value(entry["args"].clone()).expect("an entry that starts a program"),
            env: serde_json::from_value(entry["env"].clone()).expect("an entry that starts a program"),
        }
    }
}

/// What the SDK is to do; `tests/peers/node/plan.mjs` describes the fields.
#[derive(Debug, Clone, Serialize)]
pub struct Plan {
    /// Where to.
    pub connect: Connect,
    /// Tools that must be listed before the steps begin.
    pub until: Vec<String>,
    /// How long to wait for them.
    #[serde(skip)]
    pub patience: Duration,
    /// What is done with questions; nothing: the client declares that it takes none.
    pub answers: Option<Answers>,
    /// What it has as roots, in place of Ada's.
    pub roots: Option<Vec<String>>,
    /// What it shows of itself.
    pub token: Option<String>,
    /// The steps.
    pub steps: Vec<Value>,
}

/// What a client does with the questions that it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Answers {
    /// Gives what is asked for, in the name of Ada.
    Accept,
    /// Declines forms, refuses to sample, has no roots.
    Decline,
}

#[derive(Serialize)]
struct Asked<'a> {
    mode: &'static str,
    patience: u128,
    #[serde(flatten)]
    plan: &'a Plan,
}

/// What the SDK saw.
#[derive(Debug, Clone, Deserialize)]
pub struct Report {
    /// The revision that was agreed upon.
    pub revision: Option<String>,
    /// Who the peer says it is.
    pub peer: Option<Value>,
    /// The names in the very first list.
    pub first: Vec<String>,
    /// The names in the last list.
    pub tools: Vec<String>,
    /// How often the list was said to have changed.
    pub changes: u64,
    /// The methods of the questions that came, in their order.
    pub asked: Vec<String>,
    /// What came of each step: `result` or `error`, and `progress`; or `steps`.
    pub steps: Vec<Value>,
    /// Why the plan broke off.
    pub fatal: Option<String>,
    /// The driver's stderr, and that of what it started.
    #[serde(skip)]
    pub said: String,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "revision {:?}, peer {:?}, {} notices of change", self.revision, self.peer, self.changes)?;
        writeln!(f, "first list: {}", self.first.join(" "))?;
        writeln!(f, "last list: {}", self.tools.join(" "))?;
        writeln!(f, "was asked: {}", self.asked.join(" "))?;
        if let Some(fatal) = &self.fatal {
            writeln!(f, "broke off: {fatal}")?;
        }
        write!(f, "on stderr:\n{}", self.said)
    }
}
