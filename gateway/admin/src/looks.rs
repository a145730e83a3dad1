//! What is to be seen beside the board: told by whoever knows it.

use super::history::History;
use crate::telemetry::calls::Calls;
use crate::telemetry::config::Written;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::pin::Pin;
use std::sync::Arc;

/// What is to be seen beside the board. The default shows nothing.
#[derive(Clone, Default)]
pub struct Looks {
    /// The calls under way and the last ones that ended.
    pub calls: Calls,
    /// The last minutes.
    pub history: History,
    /// The tools, at most so many.
    pub tools: Option<Arc<dyn Fn(usize) -> Tools + Send + Sync>>,
    /// The definition of one, by its public name.
    pub definition: Option<Defined>,
    /// The tools that somebody is to approve, at most so many.
    pub to_approve: Option<Approvals>,
    /// Calls one, by its public name.
    pub call: Option<Caller>,
    /// The sessions, at most so many.
    pub sessions: Option<Arc<dyn Fn(usize) -> Vec<Session> + Send + Sync>>,
    /// What is configured.
    pub config: Option<Config>,
}

/// The definition of a tool as clients read it, raw JSON, by its public name.
pub type Defined = Arc<dyn Fn(&str) -> Option<Vec<u8>> + Send + Sync>;

/// Tells which tools somebody is to approve, at most so many.
pub type Approvals = Arc<dyn Fn(usize) -> ToApprove + Send + Sync>;

/// The tools that somebody is to approve.
#[derive(Serialize)]
pub struct ToApprove {
    /// `[catalog] pin`.
    pub pin: &'static str,
    /// Where the approved ones stand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// They.
    pub tools: Vec<Candidate>,
}

/// A tool that nobody has approved as it is.
#[derive(Serialize)]
pub struct Candidate {
    /// Whose it is.
    pub upstream: String,
    /// What that one calls it.
    pub own_name: String,
    /// What clients call it, or would.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `new` or `changed`.
    pub state: &'static str,
    /// As what it is defined now.
    pub definitions: Vec<Definition>,
    /// As what it was approved.
    pub approved: Vec<Box<RawValue>>,
    /// The approved tool that is gone and was defined in the same way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<String>,
}

/// A definition of a tool.
#[derive(Serialize)]
pub struct Definition {
    /// What the tool is by it.
    pub digest: String,
    /// As its upstream writes it.
    pub definition: Box<RawValue>,
}

/// Calls a tool. Dropping the future cancels the call.
pub type Caller = Arc<dyn Fn(String, Wanted) -> Pin<Box<dyn Future<Output = Done> + Send>> + Send + Sync>;

/// What a tool is called with.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// A JSON object; none is an empty one.
    #[serde(default)]
    pub arguments: Option<Box<RawValue>>,
}

/// What became of a call.
#[derive(Debug, Serialize)]
pub struct Done {
    /// `ok`, `tool_error` or `error`.
    pub outcome: &'static str,
    /// How long it took.
    pub duration_seconds: f64,
    /// The result, as the upstream wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<RawValue>>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Tells what is configured now.
pub type Config = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Written> + Send>> + Send + Sync>;

/// The tools that clients are offered, and those that they are not.
#[derive(Default, Serialize)]
pub struct Tools {
    /// Those that handshake clients are offered.
    pub tools: Vec<Tool>,
    /// Those that nobody can call, though their upstreams offer them.
    pub hidden: Vec<Hidden>,
}

/// A tool.
#[derive(Serialize)]
pub struct Tool {
    /// What clients call it.
    pub name: String,
    /// Whose it is.
    pub upstream: String,
    /// What that one calls it.
    pub own_name: String,
    /// How many bytes its definition has.
    pub definition_bytes: usize,
    /// About how many tokens that is for a model: a quarter of it.
    pub tokens: usize,
}

/// A tool that nobody can call.
#[derive(Serialize)]
pub struct Hidden {
    /// Whose it is.
    pub upstream: String,
    /// What that one calls it.
    pub own_name: String,
    /// Why.
    pub why: &'static str,
}

/// A session of a handshake client.
#[derive(Serialize)]
pub struct Session {
    /// Tells it from others; its id is secret.
    pub session: String,
    /// Who opened it; empty without tokens.
    pub principal: String,
    /// The address of its client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// What it speaks.
    pub revision: &'static str,
    /// How long nothing has come of it; not there while it is at work or has a stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_seconds: Option<u64>,
}
