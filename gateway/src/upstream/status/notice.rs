//! What an upstream tells that belongs to no call.

use crate::call::LogLevel;
use crate::protocol::value::Object;
use crate::upstream::owner::Ownership;
use std::sync::Arc;

pub use crate::upstream::owner::{Audience, Others};

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
        /// The parameters of the notification, as they came: whoever passes them on masks them.
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

/// Tells of one instance what belongs to no call, in its upstream's name and for whom it is.
#[derive(Clone)]
pub(crate) struct Notices {
    upstream: Arc<str>,
    owner: Ownership,
    hear: Arc<dyn Fn(Notice) + Send + Sync>,
}

impl Notices {
    pub(crate) fn new(upstream: &Arc<str>, owner: &Ownership, hear: Arc<dyn Fn(Notice) + Send + Sync>) -> Self {
        Self { upstream: upstream.clone(), owner: owner.clone(), hear }
    }

    /// The same for another instance of the upstream.
    pub(crate) fn of(&self, owner: &Ownership) -> Self {
        Self::new(&self.upstream, owner, self.hear.clone())
    }

    /// A log message.
    pub(crate) fn log(&self, level: LogLevel, params: Object) {
        let (upstream, whose) = self.whose();
        (self.hear)(Notice::Log { upstream, whose, level, params });
    }

    /// The same, for all but those who have an own session with the upstream.
    pub(crate) fn log_to_others(&self, others: Others, level: LogLevel, params: Object) {
        let whose = Audience::Others(others);
        (self.hear)(Notice::Log { upstream: self.upstream.clone(), whose, level, params });
    }

    /// How a task stands that somebody may have been given.
    pub(crate) fn task(&self, params: Object) {
        let (upstream, whose) = self.whose();
        (self.hear)(Notice::Task { upstream, whose, params });
    }

    /// How far a task has come.
    pub(crate) fn task_progress(&self, task: &str, params: Object) {
        let (upstream, whose) = self.whose();
        (self.hear)(Notice::TaskProgress { upstream, whose, task: task.into(), params });
    }

    /// The instance is no longer up.
    pub(crate) fn gone(&self) {
        let (upstream, whose) = self.whose();
        (self.hear)(Notice::Gone { upstream, whose });
    }

    fn whose(&self) -> (Arc<str>, Audience) {
        (self.upstream.clone(), self.owner.audience())
    }
}
