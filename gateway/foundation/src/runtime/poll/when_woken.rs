//! Polls a future only when it was woken: for what is watched beside something that is polled far more often.
//!
//! A stream that had nothing, and a timer, are asked again in every turn of their task, and have nothing to say before they wake it.
//!
//! A `select!` polls every branch each time. The clock and the end of a level, which a connection watches beside its requests,
//! are due once in minutes, and asking them each time is a measurable part of a request.

use pin_project_lite::pin_project;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Takes the wakes of what is polled.
#[derive(Debug)]
struct Knock {
    /// Whether it is to be polled.
    is_due: AtomicBool,
    /// The task that polls it.
    task: Mutex<Waker>,
}

impl Wake for Knock {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_due.store(true, Ordering::Release);
        self.lock().wake_by_ref();
    }
}

impl Knock {
    fn lock(&self) -> MutexGuard<'_, Waker> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets a poll through when it was woken, and no other.
#[derive(Debug)]
pub struct Door {
    knock: Arc<Knock>,
    /// What knocks.
    waker: Waker,
    /// The task that is woken, as the knock has it.
    task: Waker,
}

impl Default for Door {
    fn default() -> Self {
        let task = Waker::noop().clone();
        let knock = Arc::new(Knock { is_due: AtomicBool::new(true), task: Mutex::new(task.clone()) });
        Self { waker: Waker::from(knock.clone()), knock, task }
    }
}

impl Door {
    /// What is polled, where it was woken since it was pending; at first, and after it was ready, it is polled too.
    #[inline]
    pub fn poll<T>(&mut self, cx: &Context<'_>, poll: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        // It is nearly always the same one: that is seen without the lock.
        if !self.task.will_wake(cx.waker()) {
            self.wakes(cx.waker().clone());
        }
        // Whoever knocks from here on wakes the task, which comes back here.
        if !self.knock.is_due.load(Ordering::Relaxed) || !self.knock.is_due.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        let polled = poll(&mut Context::from_waker(&self.waker));
        if polled.is_ready() {
            self.knock.is_due.store(true, Ordering::Relaxed);
        }
        polled
    }

    /// Keeps nobody who has polled.
    pub fn leave(&mut self) {
        self.wakes(Waker::noop().clone());
    }

    fn wakes(&mut self, task: Waker) {
        let before = std::mem::replace(&mut *self.knock.lock(), task.clone());
        self.task = task;
        drop(before);
    }
}

/// The future, not polled again before it was woken.
pub fn poll_when_woken<F: Future>(future: F) -> PollWhenWoken<F> {
    PollWhenWoken { future, door: Door::default() }
}

pin_project! {
    /// Made by [`poll_when_woken`]: a type of its own, since an `async fn` holds what it is given twice.
    #[must_use = "a future does nothing unless polled"]
    pub struct PollWhenWoken<F> {
        #[pin]
        future: F,
        door: Door,
    }
}

impl<F: Future> Future for PollWhenWoken<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let future = this.future;
        this.door.poll(cx, |cx| future.poll(cx))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::tasks::Tasks;
    use std::future::poll_fn;
    use std::pin::pin;
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;
    use tokio::sync::Notify;

    #[tokio::test(start_paused = true)]
    async fn it_is_polled_at_first_and_when_woken_and_no_more() {
        let (polls, door, busy) = (AtomicUsize::new(0), Notify::new(), Notify::new());
        let watched = poll_when_woken(async {
            let mut door = pin!(door.notified());
            poll_fn(|cx| {
                polls.fetch_add(1, Ordering::Relaxed);
                door.as_mut().poll(cx)
            })
            .await;
        });
        let noise = async {
            for _ in 0..100 {
                busy.notify_one();
                tokio::task::yield_now().await;
            }
            door.notify_one();
            std::future::pending::<()>().await
        };
        let hearing = async {
            loop {
                busy.notified().await;
            }
        };
        tokio::select! {
            () = watched => {}
            () = noise => {}
            () = hearing => {}
        }
        assert_eq!(polls.load(Ordering::Relaxed), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wake_reaches_the_task_that_polled_last() {
        let mut watched = Box::pin(poll_when_woken(tokio::time::sleep(Duration::from_secs(1))));
        // Another task has begun to wait for it.
        assert!(watched.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let level = Tasks::new();
        level.spawn(watched);
        level.ended().await;
    }
}
