//! What one upstream offers.

use crate::call::LogLevel;
use crate::protocol::ParamHeaders;
use crate::protocol::{Object, Revision};
use bytes::Bytes;
use std::sync::Arc;

/// What one upstream offers: all pages of all its lists.
#[derive(Debug, Clone)]
pub struct Inventory {
    /// What the definitions are written in.
    pub revision: Revision,
    /// Its tools.
    pub tools: Vec<Item>,
    /// Its resources.
    pub resources: Vec<Item>,
    /// Its resource templates.
    pub templates: Vec<Item>,
    /// Its prompts.
    pub prompts: Vec<Item>,
    /// Its capabilities, as it declared them.
    pub capabilities: Object,
    /// Its instructions: a raw JSON string.
    pub instructions: Option<Bytes>,
    /// What of the protocol it has.
    pub supports: Supports,
}

/// One thing that an upstream offers.
#[derive(Debug, Clone)]
pub struct Item {
    /// The name of a tool or prompt, the `uri`, the `uriTemplate`.
    pub key: Arc<str>,
    /// As the upstream wrote it.
    pub definition: Object,
    /// The arguments of a tool that travel as headers, too.
    pub headers: Option<Arc<ParamHeaders>>,
}

/// What of the protocol an upstream has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Supports {
    /// Tools.
    pub tools: bool,
    /// Resources.
    pub resources: bool,
    /// Subscriptions to resources.
    pub subscribe: bool,
    /// Prompts.
    pub prompts: bool,
    /// Completion of arguments.
    pub completions: bool,
    /// Log messages.
    pub logging: bool,
}

/// What an upstream tells that belongs to no call.
#[derive(Debug)]
pub enum Notice {
    /// A log message.
    Log {
        /// Who tells it.
        upstream: Arc<str>,
        /// How much it matters.
        level: LogLevel,
        /// The notification's parameters.
        params: Object,
    },
}
