//! Takes the wakes of one task, and holds them back where it is not known yet whether anybody needs them.
//!
//! Whoever takes a piece of a body wakes the connection that it came on, so that the next piece is read. Behind the last piece there
//! is none: the connection has read on by then, and would be polled for nothing.

use std::cell::Cell;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

pub(super) const ASLEEP: u8 = 0;
pub(super) const POLLING: u8 = 1;
const RUNG: u8 = 2;

/// Takes the wakes of one task.
pub(super) struct Bell {
    pub(super) state: AtomicU8,
    /// Whom to wake when the task is not being polled.
    task: Mutex<Waker>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        if IS_HOLDING.get() {
            // One at a time is held: of another one it is not known what it is for.
            if let Some(other) = HELD.replace(Some(self)) {
                other.ring();
            }
        } else {
            self.ring();
        }
    }

    fn wake_by_ref(self: &Arc<Self>) {
        match IS_HOLDING.get() {
            true => self.clone().wake(),
            false => self.ring(),
        }
    }
}

impl Bell {
    /// Of a task that is woken by `task`, and asleep.
    pub(super) fn of(task: Waker) -> Self {
        Self { state: AtomicU8::new(ASLEEP), task: Mutex::new(task) }
    }

    /// Wakes this task from now on.
    pub(super) fn wakes(&self, task: &Waker) {
        self.task.lock().unwrap_or_else(PoisonError::into_inner).clone_from(task);
    }

    /// Has the task polled.
    fn ring(&self) {
        if self.state.swap(RUNG, Ordering::AcqRel) == ASLEEP {
            self.task.lock().unwrap_or_else(PoisonError::into_inner).wake_by_ref();
        }
    }
}

thread_local! {
    static IS_HOLDING: Cell<bool> = const { Cell::new(false) };
    static HELD: Cell<Option<Arc<Bell>>> = const { Cell::new(None) };
}

/// A wake that was held back; it goes on once this is dropped.
#[must_use = "it is let go where it is dropped"]
pub struct HeldWake(Option<Arc<Bell>>);

impl HeldWake {
    /// Nobody needs it.
    pub fn forget(mut self) {
        self.0 = None;
    }
}

impl Drop for HeldWake {
    fn drop(&mut self) {
        if let Some(bell) = self.0.take() {
            bell.ring();
        }
    }
}

/// Holds back whom this wakes on this thread, as far as it is a task of [`super::repoll_on_self_wake`].
pub fn hold_wakes<T>(run: impl FnOnce() -> T) -> (T, HeldWake) {
    /// Ends the holding also where it panics.
    struct Holding;
    impl Drop for Holding {
        fn drop(&mut self) {
            IS_HOLDING.set(false);
            drop(HeldWake(HELD.take()));
        }
    }
    IS_HOLDING.set(true);
    let _holding = Holding;
    let done = run();
    (done, HeldWake(HELD.take()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::poll::repoll_on_self_wake;
    use std::future::poll_fn;
    use std::pin::pin;
    use std::sync::atomic::AtomicUsize;
    use std::task::{Context, Poll};

    /// How often a task is polled that wakes itself once while wakes are held, and then does this with what was held.
    fn polls(then: impl Fn(HeldWake)) -> usize {
        let polls = AtomicUsize::new(0);
        let task = pin!(repoll_on_self_wake(poll_fn(|cx| {
            if polls.fetch_add(1, Ordering::Relaxed) == 0 {
                let ((), wake) = hold_wakes(|| cx.waker().wake_by_ref());
                then(wake);
            }
            Poll::<()>::Pending
        })));
        assert!(task.poll(&mut Context::from_waker(Waker::noop())).is_pending());
        polls.load(Ordering::Relaxed)
    }

    #[test]
    fn a_wake_that_is_held_goes_on_where_it_is_not_forgotten() {
        assert_eq!(polls(HeldWake::forget), 1);
        assert_eq!(polls(drop), 2);
    }

    #[test]
    fn only_what_wakes_meanwhile_is_held() {
        let polls = AtomicUsize::new(0);
        let task = pin!(repoll_on_self_wake(poll_fn(|cx| {
            if polls.fetch_add(1, Ordering::Relaxed) == 0 {
                hold_wakes(|| ()).1.forget();
                cx.waker().wake_by_ref();
            }
            Poll::<()>::Pending
        })));
        assert!(task.poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert_eq!(polls.load(Ordering::Relaxed), 2);
    }
}
