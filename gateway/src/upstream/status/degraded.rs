//! Shows an upstream as `degraded` while a condition holds, with the reason.

use super::record::Status;
use crate::health::Cause;
use crate::health::row::State;
use crate::transport::condition::Condition;
use std::sync::atomic::Ordering;

impl Status {
    /// A condition holds, for this reason, or no longer does. It is shown while the upstream is up: of one that is down, more is
    /// known than that.
    pub(crate) fn set_condition(&self, condition: Condition, cause: Option<&Cause>) {
        self.conditions.set(condition, cause, |shown| {
            let state = if shown.is_some() { State::Degraded } else { State::Ready };
            self.transition_from(State::is_up, state, shown, None, None);
        });
    }

    /// Another life begins: what the link of the last one showed is over.
    pub(crate) fn renew_conditions(&self) {
        self.conditions.renew();
    }

    /// It is there, as well as it is.
    pub(crate) fn came_up(&self) {
        self.is_late.store(false, Ordering::Relaxed);
        // A read that ends while it is being stopped does not bring it back.
        let may = |state: State| state.is_up() || state == State::Starting;
        self.conditions.tell(|shown| {
            self.transition_from(may, State::Ready, None, None, None);
            if shown.is_some() {
                self.transition_from(State::is_up, State::Degraded, shown, None, None);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::CauseCode;
    use crate::metrics::UPSTREAM_STATE;
    use crate::upstream::tests::rig::{Rig, config};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Barrier};
    use tracing::Metadata;
    use tracing::span::{Attributes, Id, Record};

    /// So often two changes are made at the same time.
    const ROUNDS: usize = 5_000;

    #[tokio::test]
    async fn what_ails_it_is_shown_the_gravest_first_until_it_has_passed_and_only_while_it_is_there() {
        let rig = Rig::new(config());
        let shown = || {
            let health = rig.board.snapshot().remove(0);
            (health.state, health.cause)
        };
        let degraded = |causes: &[&str]| {
            let causes = causes.iter().map(|cause| Cause::from(*cause));
            (State::Degraded, causes.reduce(|before, next| before.own("; ").then(&next)))
        };
        rig.instance.status.set_condition(Condition::Resting, Some(&"a pause".into()));
        assert_eq!(shown(), (State::Starting, None));
        rig.instance.status.came_up();
        assert_eq!(shown(), degraded(&["a pause"]));
        rig.instance.status.set_condition(Condition::Silent, Some(&"silence".into()));
        assert_eq!(shown(), degraded(&["silence", "a pause"]));
        rig.instance.status.set_condition(Condition::Silent, None);
        assert_eq!(shown(), degraded(&["a pause"]));
        rig.instance.status.set_condition(Condition::Resting, None);
        assert_eq!(shown(), (State::Ready, None));
        rig.instance.status.transition(State::BackingOff, Some(&"it has ended".into()), None, None);
        rig.instance.status.set_condition(Condition::Failing, Some(&"failures".into()));
        assert_eq!(shown(), (State::BackingOff, Some("it has ended".into())));
        assert!(
            rig.notices
                .lock()
                .unwrap()
                .iter()
                .filter(|told| matches!(told, crate::upstream::status::notice::Notice::Gone { .. }))
                .count()
                == 1
        );
    }

    #[tokio::test]
    async fn what_is_over_is_not_shown_although_changes_cross() {
        let rig = Rig::new(config());
        rig.instance.status.came_up();
        let (instance, turn) = (&rig.instance, Barrier::new(2));
        let changes = |condition: Condition| {
            for _ in 0..ROUNDS {
                turn.wait();
                instance.status.set_condition(condition, Some(&"it ails".into()));
                instance.status.set_condition(condition, None);
                turn.wait();
                let health = rig.board.snapshot().remove(0);
                assert_eq!((health.state, health.cause), (State::Ready, None), "{condition:?}");
            }
        };
        std::thread::scope(|threads| {
            threads.spawn(|| changes(Condition::Silent));
            changes(Condition::Failing);
        });
    }

    /// Counts the warnings of a change of state.
    #[derive(Clone, Default)]
    struct Warnings(Arc<AtomicUsize>);

    impl tracing::Subscriber for Warnings {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            metadata.is_event()
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn event(&self, event: &tracing::Event<'_>) {
            let metadata = event.metadata();
            if metadata.target() == UPSTREAM_STATE && *metadata.level() == tracing::Level::WARN {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}
    }

    #[tokio::test]
    async fn foreign_words_that_change_are_shown_and_make_no_line_of_the_log() {
        let rig = Rig::new(config());
        let warnings = Warnings::default();
        let _scope = tracing::subscriber::set_default(warnings.clone());
        rig.instance.status.came_up();
        for number in 0..20 {
            let cause = Cause::new(CauseCode::HttpStatus(401), "HTTP 401").foreign(&format!(": request {number}"));
            rig.instance.status.set_condition(Condition::Denied, Some(&cause));
            assert_eq!(rig.board.snapshot().remove(0).cause, Some(cause));
        }
        assert_eq!(warnings.0.load(Ordering::Relaxed), 1);
        let forbidden = Cause::new(CauseCode::HttpStatus(403), "HTTP 403").foreign(": request 20");
        rig.instance.status.set_condition(Condition::Denied, Some(&forbidden));
        assert_eq!(warnings.0.load(Ordering::Relaxed), 2, "its code has changed");
        rig.instance.status.set_condition(Condition::Denied, None);
        rig.instance.status.set_condition(Condition::Denied, Some(&"HTTP 403".into()));
        assert_eq!(warnings.0.load(Ordering::Relaxed), 3, "it was well in between");
    }
}
