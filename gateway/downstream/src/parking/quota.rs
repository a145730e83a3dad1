//! How many calls may wait for an answer of their client at once: in all, and for one client.

use crate::call::share::{Part, Share, SharePermit, Shares};
use crate::config::Questions;
use crate::runtime::complaints::{Complaints, left_unsaid};
use std::sync::Arc;
use std::time::Duration;

/// How often it is said that there is no place.
const SAY_EVERY: Duration = Duration::from_secs(60);

/// What an upstream is told whose question finds no place.
pub(crate) const FULL: &str = "too many calls are already waiting for an answer, so the question was not asked (`questions.max_open`, `questions.max_per_principal`)";

/// The calls that wait for an answer, parked or live, counted.
#[derive(Debug)]
pub(crate) struct ParkingQuota {
    max_open: usize,
    max_per_principal: usize,
    waiting: Arc<Shares>,
    complaints: Complaints,
}

impl ParkingQuota {
    pub(crate) fn new(config: &Questions) -> Self {
        let Questions { max_open, max_per_principal, .. } = *config;
        let waiting = Shares::new(max_open, Part::AtMost(max_per_principal));
        Self { max_open, max_per_principal, waiting, complaints: Complaints::every(SAY_EVERY) }
    }

    /// Counts a call of this share for as long as the place lives; `None` where that would be too many.
    pub(crate) fn enter(&self, share: &Share) -> Option<SharePermit> {
        let place = self.waiting.take(share);
        if place.is_none()
            && let Some(more) = self.complaints.take("questions")
        {
            let Self { max_open, max_per_principal, .. } = self;
            tracing::warn!(max_open, max_per_principal, more = left_unsaid(more), "{FULL}");
        }
        place
    }
}
