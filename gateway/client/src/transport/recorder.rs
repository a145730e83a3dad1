//! For tests: records the conditions and failures that a link reports.

use super::condition::Condition;
use super::events::{IncomingRequest, LinkEvents};
use super::questions::Asker;
use crate::health::{Cause, CauseCode};
use crate::memory::budget::Budget;
use crate::protocol::frame::Method;
use crate::protocol::value::Object;
use std::sync::{Arc, Mutex};

/// Events of one link.
#[derive(Default)]
pub(crate) struct Recorder {
    budget: Budget,
    conditions: Mutex<Vec<(Condition, Cause)>>,
    failure: Mutex<Option<String>>,
}

impl Recorder {
    /// Creates a recorder whose peers may use this memory.
    pub(crate) fn within(budget: &Budget) -> Arc<Self> {
        Arc::new(Self { budget: budget.clone(), ..Self::default() })
    }

    /// Returns the cause of a condition while it holds.
    pub(crate) fn condition(&self, wanted: Condition) -> Option<String> {
        let all = self.conditions.lock().expect("no test panics while it holds the lock");
        all.iter().find(|(condition, _)| *condition == wanted).map(|(_, cause)| cause.full().into_owned())
    }

    /// Returns the text of the last failure.
    pub(crate) fn last_failure(&self) -> Option<String> {
        self.failure.lock().expect("no test panics while it holds the lock").clone()
    }
}

impl LinkEvents for Recorder {
    fn notified(&self, _method: Method, _params: Object) {}

    fn asked(&self, _asked: IncomingRequest, _by: Arc<dyn Asker>) {}

    fn set_condition(&self, condition: Condition, cause: Option<&Cause>) {
        let mut all = self.conditions.lock().expect("no test panics while it holds the lock");
        all.retain(|(known, _)| *known != condition);
        all.extend(cause.map(|cause| (condition, cause.clone())));
    }

    fn violated(&self, _kind: &'static str, detail: &dyn std::fmt::Display) {
        *self.failure.lock().expect("no test panics while it holds the lock") = Some(detail.to_string());
    }

    fn budget(&self) -> &Budget {
        &self.budget
    }

    fn failed(&self, _kind: &'static str, _code: CauseCode, why: &dyn std::fmt::Display) {
        *self.failure.lock().expect("no test panics while it holds the lock") = Some(why.to_string());
    }

    fn suspect(&self, _cause: &str) {}
}
