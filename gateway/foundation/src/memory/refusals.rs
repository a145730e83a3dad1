//! How often clients were refused for want of room, by what was full.

use crate::metrics;
use crate::runtime::complaints::{Complaints, left_unsaid};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError};

/// Refusals by what was full, and when each was last said. Cheap to clone; clones are the same count.
#[derive(Debug, Clone, Default)]
pub struct Refusals(Arc<Counted>);

#[derive(Debug, Default)]
struct Counted {
    counts: Mutex<BTreeMap<&'static str, u64>>,
    complaints: Complaints,
}

impl Refusals {
    /// Something of a client was refused since `full` is: counted each time, shown with the limits, a line of the log now and then.
    pub fn turn_away(&self, full: &'static str, why: &dyn Display) {
        metrics::refused(full).increment(1);
        if let Some(more) = self.count(full) {
            tracing::warn!(full, reason = %why, more = left_unsaid(more), "client refused: limit reached");
        }
    }

    /// Counts a refusal. Where it is time for a line of the log: how many had none since the last one.
    fn count(&self, full: &'static str) -> Option<u64> {
        *self.0.counts.lock().unwrap_or_else(PoisonError::into_inner).entry(full).or_default() += 1;
        self.0.complaints.take(full)
    }

    /// How many there were of each.
    pub fn all(&self) -> BTreeMap<&'static str, u64> {
        self.0.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::Refusals;
    use crate::runtime::complaints::SAID_EVERY;

    #[tokio::test(start_paused = true)]
    async fn every_refusal_is_counted_and_each_kind_is_said_now_and_then() {
        let refusals = Refusals::default();
        let said = ["sessions", "sessions", "sessions", "bodies"].map(|full| refusals.count(full));
        assert_eq!(said, [Some(0), None, None, Some(0)]);
        tokio::time::advance(SAID_EVERY).await;
        assert_eq!(refusals.count("sessions"), Some(2));
        assert_eq!(refusals.all().into_iter().collect::<Vec<_>>(), [("bodies", 1), ("sessions", 4)]);
    }
}
