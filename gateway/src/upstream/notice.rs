//! What an upstream tells that belongs to no call.

use crate::call::LogLevel;
use crate::protocol::Object;
use std::sync::Arc;

/// What an upstream tells that belongs to no call.
#[derive(Debug, Clone)]
pub enum Notice {
    /// A log message.
    Log {
        /// Who tells it.
        upstream: Arc<str>,
        /// How much it matters.
        level: LogLevel,
        /// The parameters of the notification, as they came.
        params: Object,
    },
}
