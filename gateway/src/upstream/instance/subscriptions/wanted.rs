//! The part of an instance that holds what is wanted of it beside its answers. Survives the link.

use super::log_level::LogLevels;
use super::resources::WantedSubscriptions;
use super::session_levels::SessionLevels;
use crate::upstream::status::notice::Audience;
use std::sync::{Arc, OnceLock};

/// What is wanted of one instance beside its answers.
#[derive(Default)]
pub(crate) struct Wanted {
    /// Updates of resources.
    pub(crate) subscriptions: WantedSubscriptions,
    /// Log messages, by sessions and by open calls.
    pub(crate) levels: LogLevels,
    /// What sessions want of the upstream and of its instances, once that is known. Of the primary instance.
    session_levels: OnceLock<Arc<SessionLevels>>,
}

impl Wanted {
    /// From now on the sessions' levels are these.
    pub(crate) fn follow_sessions(&self, levels: &Arc<SessionLevels>) {
        let _is_first = self.session_levels.set(levels.clone());
    }

    /// The most verbose level that sessions want of an instance of this upstream with this audience.
    pub(crate) fn level_of_sessions(&self, whose: &Audience, upstream: &str) -> Option<crate::call::LogLevel> {
        self.session_levels.get().and_then(|levels| levels.of(whose, upstream))
    }
}
