//! A script: data that describes an upstream, what it offers and how it misbehaves.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::revision::Revision;

pub mod plan;
pub mod rule;
pub use rule::{Act, Quoting, Rule};

/// An upstream as data. Any interpreter of [`crate::engine`] can play it over any transport.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Script {
    /// The name in its own identity, and in the texts of what it offers.
    pub name: String,
    /// The revisions that it speaks; the first is its favourite.
    pub revisions: Vec<Revision>,
    /// The built-in tools that it has.
    pub tools: Vec<String>,
    /// So many further tools, `tool_0` and on; each one echoes.
    pub more_tools: usize,
    /// So many further resources, `script://NAME/more/0` and on.
    pub more_resources: usize,
    /// Definitions added to the tools as they are: JSON text, each an object.
    pub raw_tools: Vec<String>,
    /// Tools that are listed for some clients only: the capability, whether it is the ones that declare it, and the tool.
    pub tools_for: Vec<(String, bool, String)>,
    /// Whether it has resources, one template and prompts beside the tools.
    pub offers_all: bool,
    /// Whether it has what asks before it answers: the tool `ask`, the prompt `ask`, the resources `script://NAME/ask/PLAN/WHO`.
    pub asks: bool,
    /// Whether it has the tool `task`, which runs as a task only.
    pub tasks: bool,
    /// The authority in its resource URIs (`script://AUTHORITY/text`); empty stands for the name.
    pub authority: String,
    /// Its instructions.
    pub instructions: String,
    /// The capabilities it claims, as JSON text; empty stands for the ones it has.
    pub capabilities: String,
    /// Entries of a list per page; 0 puts all on one.
    pub page: usize,
    /// What it does out of the ordinary; the first rule that applies acts.
    pub rules: Vec<Rule>,
    /// How it speaks Streamable HTTP.
    pub http: HttpManner,
    /// As a child: goes on when stdin has ended.
    pub deaf_to_eof: bool,
    /// As a child: goes on when told to end by SIGTERM.
    pub deaf_to_term: bool,
    /// Whether every frame goes to the journal; off under load.
    pub journal_frames: bool,
    /// Whether every call that runs goes to the journal even where frames do not.
    pub journal_calls: bool,
    /// As a child: the folder of the published schemas, if there is one.
    pub schemas: Option<PathBuf>,
    /// As a child: where the journal is taken and orders are given.
    pub control: Option<SocketAddr>,
}

/// How an upstream speaks Streamable HTTP.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct HttpManner {
    /// The form of its answers.
    pub answers: Answers,
    /// Legacy: whether it gives a session id and insists on it.
    pub sessions: bool,
    /// Legacy: whether each session has its own subscriptions and added tools; what it adds is told in that session alone.
    pub apart: bool,
    /// Legacy: the id that all sessions are given; none where each has its own.
    pub one_session: Option<String>,
    /// Legacy: an id that it gives has at least so many bytes.
    pub session_bytes: usize,
    /// Legacy: so many sessions there may be; 0 for any number.
    pub sessions_max: usize,
    /// Legacy: whether it serves a GET stream; else 405.
    pub get_stream: bool,
    /// Legacy: whether SSE answers begin with an event id and `retry`, so that a cut stream can be resumed.
    pub resumable: bool,
    /// HTTP+SSE: the address for messages; `$ORIGIN` and `$ID` stand for those of the stream, and nothing for no address.
    pub endpoint: String,
    /// HTTP+SSE: the methods whose POSTs are never answered, though the message is taken.
    pub held: Vec<String>,
    /// WebSocket: the subprotocol that it names; empty for none.
    pub subprotocol: String,
}

/// The form of an HTTP answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answers {
    /// One JSON body, unless something else comes before the answer.
    Auto,
    /// Always a stream of events.
    Sse,
}

impl Default for HttpManner {
    fn default() -> HttpManner {
        let endpoint = "/message?session=$ID".to_owned();
        let subprotocol = "mcp".to_owned();
        HttpManner {
            answers: Answers::Auto,
            sessions: true,
            apart: false,
            one_session: None,
            session_bytes: 0,
            sessions_max: 0,
            get_stream: true,
            resumable: false,
            endpoint,
            held: Vec::new(),
            subprotocol,
        }
    }
}

impl Default for Script {
    fn default() -> Script {
        Script {
            name: "script".into(),
            revisions: vec![Revision::R2025_11_25],
            tools: ["echo", "wait", "progress", "fail", "tool_error", "touch"].map(String::from).to_vec(),
            more_tools: 0,
            more_resources: 0,
            raw_tools: Vec::new(),
            tools_for: Vec::new(),
            offers_all: true,
            asks: false,
            tasks: false,
            authority: String::new(),
            instructions: String::new(),
            capabilities: String::new(),
            page: 0,
            rules: Vec::new(),
            http: HttpManner::default(),
            deaf_to_eof: false,
            deaf_to_term: false,
            journal_frames: true,
            journal_calls: false,
            schemas: None,
            control: None,
        }
    }
}

impl Script {
    /// An upstream of that name which speaks one revision and offers everything.
    #[must_use]
    pub fn new(name: &str, revision: Revision) -> Script {
        Script { name: name.into(), revisions: vec![revision], ..Script::default() }
    }

    /// The same with one more rule.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Script {
        self.rules.push(rule);
        self
    }

    /// The same, and it asks before it answers: the plan ([`plan::Plan`]) stands in the arguments `plan` and `who`.
    /// `chatter` logs at every level that is wanted, for `who`; `structured` gives `value` back as structured content.
    #[must_use]
    pub fn asking(mut self) -> Script {
        self.asks = true;
        self.tools.extend(["ask", "chatter", "structured"].map(String::from));
        self
    }

    /// The same, with the tool `task`, which runs as a task only.
    #[must_use]
    pub fn tasked(mut self) -> Script {
        self.tasks = true;
        self.tools.push("task".into());
        self
    }

    /// The same with these built-in tools only, and nothing beside tools.
    #[must_use]
    pub fn only_tools(mut self, tools: &[&str]) -> Script {
        self.tools = tools.iter().map(ToString::to_string).collect();
        self.offers_all = false;
        self
    }

    /// The same, changed by a closure.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Script)) -> Script {
        change(&mut self);
        self
    }

    /// The authority of its resource URIs.
    #[must_use]
    pub fn authority(&self) -> &str {
        if self.authority.is_empty() { &self.name } else { &self.authority }
    }

    /// Whether it speaks the stateless revision.
    #[must_use]
    pub fn is_modern(&self) -> bool {
        self.revisions.contains(&Revision::MODERN)
    }

    /// The legacy revision that it answers a handshake with.
    #[must_use]
    pub fn negotiate(&self, asked: &str) -> Option<Revision> {
        let legacy = || self.revisions.iter().copied().filter(|revision| !revision.is_modern());
        legacy().find(|revision| revision.text() == asked).or_else(|| legacy().next())
    }
}
