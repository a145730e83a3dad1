//! Shows an upstream that something ails as `degraded`, with the reason, until it has passed.

use super::ails::Ail;
use super::standing::Standing;
use crate::lifecycle::State;

impl Standing {
    /// Something ails it, or no longer does. It is shown while it is there: of what is not, more is known than that.
    pub(crate) fn ails(&self, ail: Ail, cause: Option<&str>) {
        let shown = self.ails.set(ail, cause);
        let state = if shown.is_some() { State::Degraded } else { State::Ready };
        self.moved_from(State::is_up, state, shown.as_deref(), None, None);
    }

    /// It is there, as well as it is.
    pub(crate) fn came_up(&self) {
        self.moved(State::Ready, None, None, None);
        if let Some(cause) = self.ails.shown() {
            self.moved_from(State::is_up, State::Degraded, Some(&cause), None, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::rig::{Rig, config};
    use super::*;

    #[tokio::test]
    async fn what_ails_it_is_shown_the_gravest_first_until_it_has_passed_and_only_while_it_is_there() {
        let rig = Rig::new(config());
        let shown = || {
            let health = rig.board.snapshot().remove(0);
            (health.state, health.cause)
        };
        let degraded = |cause: &str| (State::Degraded, Some(cause.to_owned()));
        rig.standing.ails(Ail::Resting, Some("a pause"));
        assert_eq!(shown(), (State::Starting, None));
        rig.standing.came_up();
        assert_eq!(shown(), degraded("a pause"));
        rig.standing.ails(Ail::Silent, Some("silence"));
        assert_eq!(shown(), degraded("silence; a pause"));
        rig.standing.ails(Ail::Silent, None);
        assert_eq!(shown(), degraded("a pause"));
        rig.standing.ails(Ail::Resting, None);
        assert_eq!(shown(), (State::Ready, None));
        rig.standing.moved(State::BackingOff, Some("it has ended"), None, None);
        rig.standing.ails(Ail::Failing, Some("failures"));
        assert_eq!(shown(), (State::BackingOff, Some("it has ended".to_owned())));
        assert!(
            rig.notices.lock().unwrap().iter().filter(|told| matches!(told, super::super::Notice::Gone { .. })).count()
                == 1
        );
    }
}
