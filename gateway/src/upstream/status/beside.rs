//! How an instance beside the primary one shows that it does not come up: with its upstream, since its own place goes with it.

use super::record::Status;
use crate::health::{Cause, CauseCode};
use crate::metrics;
use crate::runtime::complaints::left_unsaid;
use std::sync::atomic::Ordering;

impl Status {
    /// What is wrong with an instance beside the primary one is shown with its upstream, too.
    pub(super) fn note_at_upstream(&self, cause: &Cause) {
        if let Some(number) = self.number {
            self.siblings.note(number, &self.handle.health().name, cause);
        }
    }

    /// A start did not lead to a peer. Of the primary instance its state says so.
    pub(crate) fn start_failed(&self, code: CauseCode) {
        self.is_late.store(false, Ordering::Relaxed);
        // The upstream was not reached where the token of a client is refused before.
        if self.number.is_some() && code != CauseCode::ClientTokenRefused {
            self.metrics.failures("instance_start", code.as_str()).increment(1);
            self.siblings.start_failed();
        }
    }

    /// A call has waited for the start as long as a call does, and was refused. Of the primary instance its state says so.
    pub(crate) fn is_awaited_in_vain(&self, cause: &Cause) {
        if self.number.is_none() {
            return;
        }
        self.is_late.store(true, Ordering::Relaxed);
        self.note_at_upstream(cause);
        if let Some(more) = self.siblings.may_say("late") {
            let (upstream, instance, more) = (&*self.name, self.number, left_unsaid(more));
            let (cause, cause_code) = (&*cause.full(), cause.code().as_str());
            tracing::warn!(
                target: metrics::UPSTREAM_STATE,
                upstream,
                instance,
                cause,
                cause_code,
                more,
                "instance does not start; call refused"
            );
        }
    }

    /// The instance ends. One that kept a call waiting and never came up is a start that failed.
    pub(crate) fn ends(&self) {
        if self.is_late.load(Ordering::Relaxed) {
            self.start_failed(CauseCode::Starting);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::health::row::State;
    use crate::health::{CauseCode, StatusBoard};
    use crate::upstream::tests::rig::{Rig, config};

    /// The last error of the upstream, and how many starts of instances failed.
    fn shown(board: &StatusBoard) -> (Option<String>, u64) {
        let health = board.snapshot().remove(0);
        (health.last_error.map(|error| error.cause.full().into_owned()), health.failed_starts)
    }

    #[tokio::test(start_paused = true)]
    async fn what_fails_with_an_instance_stays_known_when_it_is_gone() {
        let rig = Rig::new(config());
        let instance = rig.beside("session 7", 3);
        let status = &instance.status;
        status.transition(State::BackingOff, Some(&"it exited".into()), None, None);
        status.start_failed(CauseCode::Exited(3));
        assert_eq!(shown(&rig.board), (Some("instance 3 (session 7): it exited".into()), 1));
        // One that never fails, and never comes up either.
        status.transition(State::Starting, None, None, None);
        status.is_awaited_in_vain(&"still starting after 5 s".into());
        assert_eq!(shown(&rig.board), (Some("instance 3 (session 7): still starting after 5 s".into()), 1));
        status.ends();
        status.ends();
        status.handle.leave();
        assert_eq!(shown(&rig.board).1, 2, "counted once");
        rig.instance.status.is_awaited_in_vain(&"still starting".into());
        rig.instance.status.start_failed(CauseCode::Exited(3));
        assert_eq!(shown(&rig.board).1, 2, "the primary instance is none of them");
    }

    #[tokio::test(start_paused = true)]
    async fn of_many_instances_that_fail_there_is_a_line_now_and_then() {
        let rig = Rig::new(config());
        let lines =
            (0..50).filter(|number| rig.beside("session", *number).status.siblings.may_say("failed").is_some()).count();
        assert_eq!(lines, 1);
        let late = rig.beside("session", 99);
        late.status.is_awaited_in_vain(&"still starting".into());
        late.status.came_up();
        late.status.ends();
        assert_eq!(shown(&rig.board).1, 0, "it came up after all");
    }
}
