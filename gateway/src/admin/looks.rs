//! What is to be seen beside the board: told by whoever knows it.

use crate::telemetry::calls::Calls;
use crate::telemetry::config::Written;
use serde::Serialize;
use std::pin::Pin;
use std::sync::Arc;

/// What is to be seen beside the board. The default shows nothing.
#[derive(Clone, Default)]
pub struct Looks {
    /// The calls under way and the last ones that ended.
    pub calls: Calls,
    /// The tools, at most so many.
    pub tools: Option<Arc<dyn Fn(usize) -> Vec<Tool> + Send + Sync>>,
    /// The sessions, at most so many.
    pub sessions: Option<Arc<dyn Fn(usize) -> Vec<Session> + Send + Sync>>,
    /// What is configured.
    pub config: Option<Config>,
}

/// Tells what is configured now.
pub type Config = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Written> + Send>> + Send + Sync>;

/// A tool.
#[derive(Serialize)]
pub struct Tool {
    /// What clients call it.
    pub name: String,
    /// Whose it is.
    pub upstream: String,
    /// What that one calls it.
    pub own_name: String,
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
