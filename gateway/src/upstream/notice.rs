//! What an upstream tells that belongs to no call.

use crate::call::{LogLevel, Principal};
use crate::protocol::Object;
use std::sync::Arc;

/// What an upstream tells that belongs to no call.
#[derive(Debug, Clone)]
pub enum Notice {
    /// A log message.
    Log {
        /// Who tells it.
        upstream: Arc<str>,
        /// For whom it is.
        whose: Audience,
        /// How much it matters.
        level: LogLevel,
        /// The parameters of the notification, as they came.
        params: Object,
    },
    /// How a task stands.
    Task {
        /// Who tells it.
        upstream: Arc<str>,
        /// For whom it can be.
        whose: Audience,
        /// The parameters of the notification, as they came.
        params: Object,
    },
    /// How far a task has come whose maker wants to know.
    TaskProgress {
        /// Who tells it.
        upstream: Arc<str>,
        /// For whom it can be.
        whose: Audience,
        /// The task's own id.
        task: Box<str>,
        /// The parameters of the notification; their token is the upstream hop's.
        params: Object,
    },
    /// Who told things is gone: what comes next knows nothing of it.
    Gone {
        /// Who told them.
        upstream: Arc<str>,
        /// For whom they were.
        whose: Audience,
    },
}

/// For whom something is that belongs to no call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Audience {
    /// Nobody in particular.
    Everyone,
    /// The handshake session with this id.
    Session(Arc<str>),
    /// All clients of one principal.
    Principal(Principal),
}
