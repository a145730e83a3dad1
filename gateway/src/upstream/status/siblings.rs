//! What instances beside the primary one show at their upstream: they come and go, and take their own places on the board along.

use crate::health::{Cause, StatusHandle};
use crate::runtime::complaints::Complaints;

/// What all instances of one upstream have in common.
pub(super) struct Siblings {
    /// The place of the upstream itself.
    upstream: StatusHandle,
    /// Which of their failures were logged last.
    complaints: Complaints,
}

impl Siblings {
    pub(super) fn new(upstream: StatusHandle) -> Self {
        Self { upstream, complaints: Complaints::default() }
    }

    /// How many failed in this way unsaid since the last line about one that did, where it is time for another.
    pub(super) fn may_say(&self, how: &'static str) -> Option<u64> {
        self.complaints.take(how)
    }

    /// What is wrong with an instance is the last error of its upstream, too.
    pub(super) fn note(&self, number: u64, whose: &str, cause: &Cause) {
        let cause =
            Cause::default().own(&format!("instance {number}")).foreign(&format!(" ({whose})")).own(": ").then(cause);
        self.upstream.update(|health| health.note(cause));
    }

    /// One more start of an instance failed.
    pub(super) fn start_failed(&self) {
        self.upstream.update(|health| health.failed_starts += 1);
    }
}
