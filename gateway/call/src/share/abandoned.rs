//! Calls for whose answers nobody waits at the moment: they go on, and their places are given to calls for which somebody does.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// So long the place of a call is kept for a client that may come back for the answer: clients come back after a second, and more often.
const KEPT_FOR: Duration = Duration::from_secs(10);

/// A call for whose answer nobody waits. It goes on, and what limits calls may give its place to another one.
pub struct Abandoned {
    /// From then on its place may be given.
    due: Instant,
    state: Mutex<State>,
    given: CancellationToken,
}

struct State {
    /// So many places a limit counts for it: one for each call, where it is several.
    places: usize,
    fate: Fate,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Open,
    /// Somebody waits again.
    Back,
    /// Its places were given.
    Given,
}

impl Abandoned {
    /// From now on nobody waits; says whether a client can come back for the answer.
    pub fn new(may_return: bool) -> Arc<Self> {
        let due = Instant::now() + if may_return { KEPT_FOR } else { Duration::ZERO };
        let state = Mutex::new(State { places: 0, fate: Fate::Open });
        Arc::new(Self { due, state, given: CancellationToken::new() })
    }

    /// A limit counts a place for it.
    pub fn hold(&self) {
        self.lock().places += 1;
    }

    /// A call of it has ended; whether its place was not given away before.
    pub fn release(&self) -> bool {
        let mut state = self.lock();
        state.places = state.places.saturating_sub(1);
        state.fate != Fate::Given
    }

    /// How long its places are still kept; `None` where they are not to be had.
    pub fn kept(&self) -> Option<Duration> {
        let state = self.lock();
        let is_open = state.fate == Fate::Open && state.places > 0;
        is_open.then(|| self.due.saturating_duration_since(Instant::now()))
    }

    /// Gives its places away, where they are no longer kept: so many. What is left of it is dropped.
    pub fn give(&self) -> usize {
        let mut state = self.lock();
        if state.fate != Fate::Open || state.places == 0 || self.due > Instant::now() {
            return 0;
        }
        state.fate = Fate::Given;
        self.given.cancel();
        state.places
    }

    /// Somebody waits again; not where it is too late for that.
    pub fn back(&self) -> bool {
        let mut state = self.lock();
        if state.fate == Fate::Open {
            state.fate = Fate::Back;
        }
        state.fate == Fate::Back
    }

    /// Resolves once its places were given away.
    pub async fn given(&self) {
        self.given.cancelled().await;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn places_are_kept_for_who_may_come_back_and_given_once() {
        let call = Abandoned::new(true);
        assert_eq!((call.kept(), call.give()), (None, 0), "no limit counts it");
        call.hold();
        call.hold();
        assert_eq!((call.kept(), call.give()), (Some(KEPT_FOR), 0));
        tokio::time::advance(KEPT_FOR).await;
        assert_eq!((call.kept(), call.give(), call.give()), (Some(Duration::ZERO), 2, 0));
        call.given().await;
        assert!(!call.back() && !call.release() && call.kept().is_none());

        let other = Abandoned::new(true);
        other.hold();
        assert!(other.back());
        tokio::time::advance(KEPT_FOR).await;
        assert!(other.give() == 0 && other.release());
        let lost = Abandoned::new(false);
        lost.hold();
        assert_eq!(lost.give(), 1);
    }
}
