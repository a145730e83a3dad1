//! What a reply tells before its outcome.

use super::ask::Ask;
use crate::call::{ListenFilter, LogLevel};
use crate::protocol::value::Object;
use std::sync::Arc;

/// One thing that happens while a call goes on.
#[derive(Debug)]
pub enum Event {
    /// The parameters of a progress notification; its `progressToken` is the upstream hop's and is replaced at the exit.
    Progress(Object),
    /// The parameters of a log message, with its level.
    Log(LogLevel, Object),
    /// Only in the reply of a listen call.
    Change(Change),
    /// A live question.
    Ask(Box<Ask>),
}

/// What a listen call hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The call was taken and this much of it will be honoured; the first event of every listen reply.
    Acknowledged(ListenFilter),
    /// The tool list changed.
    Tools,
    /// The prompt list changed.
    Prompts,
    /// The resource or the template list changed.
    Resources,
    /// A resource changed: its public URI.
    Updated(Arc<str>),
    /// A task stands otherwise than before: the parameters of the notification, under its public id. The `_meta` member that
    /// ties them to a listen call is the upstream hop's and is replaced at the exit.
    Task(Object),
}
